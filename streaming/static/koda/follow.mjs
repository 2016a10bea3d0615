// A run's story as it goes on, shared by all tabs of a browser: one of them has the stream, and tells
// the others. Whoever that is, every tab reduces the same numbered events, so all of them agree.

import { readOn } from './log.mjs';
import { openStream } from './stream.mjs';
import { isOver, newStory, tell } from './story.mjs';

const BATCH = 30; // ms; events travel between tabs by the handful
const MAX_ANEW = 3; // so often a log that does not fit is read from its beginning

/**
 * Follows a run on from `story`, until the returned function is called. `changed(story)` after each
 * step, `trouble(is)` when the connection breaks and when it is back, and `ended()` when nothing
 * more will come: it is over, or the server refuses.
 */
export function follow(runId, story, { changed, trouble, ended }) {
  const leaving = new AbortController();
  const { signal } = leaving;
  const tabs = new BroadcastChannel(`koda.run.${runId}`);
  let current = story;
  let leads = false;
  let unsent = [];
  let anew = 0;
  let since = null; // what came while the log was read

  function post(message) {
    if (!signal.aborted) tabs.postMessage(message);
  }

  function adopt(next) {
    if (signal.aborted || next === current) return;
    current = next;
    changed(current);
    if (isOver(current)) ended();
  }

  function take(event) {
    try {
      adopt(tell(current, event));
      since?.push(event);
      if (event.type === 'snapshot' && leads) fillIn();
      return true;
    } catch (problem) {
      if (leads) startAnew(problem);
      else post({ ask: true }); // a hole: the leader has it all
      return false;
    }
  }

  function startAnew(problem) {
    console.warn(problem);
    anew += 1;
    if (anew > MAX_ANEW) return ended();
    adopt(newStory(runId));
    return restart();
  }

  // A snapshot stands for much, but not for the order of text and tools, nor for earlier rounds.
  async function fillIn() {
    since ??= [];
    try {
      const log = await readOn(newStory(runId));
      adopt(since.reduce(tell, log));
    } catch (problem) {
      console.warn(problem); // what the snapshot says stays
    }
    since = null;
  }

  function share(event) {
    if (unsent.push(event) === 1) setTimeout(flush, BATCH);
  }

  function flush() {
    if (unsent.length) post({ events: unsent });
    unsent = [];
  }

  tabs.onmessage = ({ data }) => {
    if (data.ask && leads) post({ story: current });
    else if (data.story?.state.lastSequence > current.state.lastSequence) adopt(data.story);
    else data.events?.every(take);
    if ('trouble' in data) trouble(data.trouble);
  };

  let stream = new AbortController();
  function restart() {
    stream.abort();
    stream = new AbortController();
    signal.addEventListener('abort', () => stream.abort());
    openStream(runId, {
      position: () => current.state.lastSequence,
      event: (event) => { share(event); take(event); },
      trouble: (is) => { trouble(is); post({ trouble: is }); },
      closed: () => signal.aborted || ended(),
      signal: stream.signal,
    });
  }

  function lead() {
    leads = true;
    post({ story: current });
    restart();
    return new Promise((leave) => { signal.addEventListener('abort', leave); });
  }

  post({ ask: true });
  if (navigator.locks) {
    navigator.locks.request(`koda.run.${runId}`, { signal }, lead).catch(() => {}); // left while waiting
  } else lead(); // locks exist on https and on localhost only: elsewhere each tab has a stream
  return () => {
    if (signal.aborted) return;
    flush();
    leaving.abort();
    tabs.close();
  };
}

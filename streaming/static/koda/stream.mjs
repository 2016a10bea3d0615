// One run's events from the server: over the stream where there is room for one, else by asking.

import { call, isPassing } from './api.mjs';
import { readLog } from './log.mjs';

const SEATS = 4; // a browser has six connections per host for all its tabs; two are for the rest
const POLL = 1500; // ms
const SILENCE = 5000; // ms; scripts never see pings, so a dead stream looks like a quiet one
const PATIENCE = 4000; // ms; a server that does not say how far it is does not stream either
const LATE = 1500; // ms in which the stream may still bring what the server says it has

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/**
 * Brings the events after `position()`, a sequence, until `signal` aborts. `event(it)` for each;
 * `trouble(is)` when the line breaks and when it is well again; `closed()` when the server has
 * nothing more to say, or refuses to say it: whoever watches reads the conversation then.
 */
export async function openStream(runId, { position, event, trouble, closed, signal }) {
  const source = { runId, position, event, trouble, closed, signal };
  while (!signal.aborted) {
    const leave = await takeSeat(signal);
    if (leave) return listen(source, leave);
    await poll(source);
    await pause(POLL);
  }
  return undefined;
}

async function poll({ runId, position, event, trouble, closed, signal }) {
  try {
    const events = await readLog(runId, position());
    if (signal.aborted) return;
    trouble(false);
    events.forEach(event);
  } catch (problem) {
    if (signal.aborted) return;
    if (isPassing(problem)) trouble(true);
    else closed();
  }
}

function listen(source, leave) {
  const { runId, position, event, trouble, closed, signal } = source;
  let line;
  let lastHeard;

  function connect() {
    line?.close();
    lastHeard = Date.now();
    const from = position() > 0 ? `&last_event_id=${position() - 1}` : '';
    line = new EventSource(`/api/runs/${runId}/stream?protocol=agent${from}`);
    line.onopen = () => trouble(false);
    line.onmessage = ({ data }) => {
      lastHeard = Date.now();
      trouble(false);
      event(JSON.parse(data));
    };
    // Of two kinds: the server's own `error` event has data, trouble on the line has none.
    line.onerror = ({ data }) => {
      if (data && JSON.parse(data).code === 'gone') closed();
      else if (line.readyState === EventSource.CLOSED) closed();
      else trouble(true);
    };
  }

  const clock = setInterval(async () => {
    if (Date.now() - lastHeard < SILENCE) return;
    lastHeard = Date.now();
    if (await isDead(source)) connect();
  }, 1000);
  signal.addEventListener('abort', () => {
    clearInterval(clock);
    line?.close();
    leave();
  });
  connect();
}

// The server knows more than the stream has brought, and the stream does not bring it.
async function isDead({ runId, position, trouble, closed, signal }) {
  try {
    const { last_seq: last } = await call('GET', `/api/runs/${runId}`, { patience: PATIENCE });
    if ((last ?? -1) < position()) return false;
    const before = position();
    await pause(LATE);
    return !signal.aborted && position() === before;
  } catch (problem) {
    if (signal.aborted) return false;
    if (isPassing(problem)) trouble(true);
    else closed();
    return problem.status === 0;
  }
}

// Answers with a function that gives the seat back; null if all are taken.
async function takeSeat(signal) {
  if (!navigator.locks) return () => {}; // they exist on https and on localhost only
  for (let seat = 0; seat < SEATS && !signal.aborted; seat += 1) {
    const leave = await sit(`koda.seat.${seat}`);
    if (leave) return leave;
  }
  return null;
}

function sit(name) {
  return new Promise((resolve) => {
    navigator.locks.request(name, { ifAvailable: true }, (lock) => {
      if (lock === null) return resolve(null);
      return new Promise((leave) => { resolve(leave); });
    });
  });
}

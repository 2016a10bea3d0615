// A run's stream as a sequence of reduced states. It mends nothing by itself:
// whoever watches reads the conversation again and watches anew.

import { initialAgentState, reduceAgentEvent } from './reducer.mjs';

const SILENCE = 30_000; // ms; scripts never see pings, so a dead stream looks like a quiet one
const SEATS = 4; // a browser keeps six connections per host for all its tabs; two are for the rest
const SEAT_POLL = 250; // ms

/**
 * Follows a run from its start until the returned function is called. Calls
 * `changed(state)` after every event, and `broken(code)` at most once, when
 * nothing more will come: with the code of the server's `error` event, or
 * `refused`, `misfit` (an event that the state refuses), `silence`.
 */
export function watch(runId, { changed, broken }) {
  const leaving = new AbortController();
  const { signal } = leaving;
  let state = initialAgentState(runId);
  let lastHeard = Date.now();

  function breakOff(code) {
    if (signal.aborted) return;
    leaving.abort();
    broken(code);
  }

  function open() {
    const source = new EventSource(`/api/runs/${runId}/stream?protocol=agent`);
    signal.addEventListener('abort', () => source.close());
    source.onmessage = ({ data }) => {
      lastHeard = Date.now();
      try {
        state = reduceAgentEvent(state, JSON.parse(data));
      } catch (problem) {
        console.warn(problem);
        return breakOff('misfit');
      }
      changed(state);
    };
    // Of two kinds: the server's own `error` event has data, trouble on the line has none.
    source.onerror = ({ data }) => {
      if (data) breakOff(JSON.parse(data).code);
      else if (source.readyState === EventSource.CLOSED) breakOff('refused');
    };
  }

  const clock = setInterval(() => Date.now() - lastHeard > SILENCE && breakOff('silence'), 1000);
  signal.addEventListener('abort', () => clearInterval(clock));
  takeSeat(signal).then(() => signal.aborted || open());
  return () => leaving.abort();
}

// Resolves once one of the browser's few seats is ours, which it is until `signal` aborts.
async function takeSeat(signal) {
  if (!navigator.locks) return; // they exist on https and on localhost only
  while (!signal.aborted) {
    for (let seat = 0; seat < SEATS; seat += 1) {
      if (await sit(`koda.seat.${seat}`, signal)) return;
    }
    await new Promise((resolve) => { setTimeout(resolve, SEAT_POLL); });
  }
}

function sit(name, signal) {
  return new Promise((resolve) => {
    navigator.locks.request(name, { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      if (lock === null || signal.aborted) return undefined;
      return new Promise((leave) => { signal.addEventListener('abort', leave); });
    });
  });
}

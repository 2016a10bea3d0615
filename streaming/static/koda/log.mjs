// A run's log, read page by page over the API, as the events that the stream would have brought.

import { call } from './api.mjs';
import { tell } from './story.mjs';

const TYPES = { delta: 'token_delta', reasoning: 'reasoning_delta' };
const camelCase = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

/** Twin of `to_agent_event` in runs/reducer.py. */
export function toAgentEvent(runId, { seq, type, data }) {
  const head = { runId, sequence: seq + 1, type: TYPES[type] ?? type };
  return { ...fieldsOf(type, data), ...head };
}

function fieldsOf(type, data) {
  if (type in TYPES) return { delta: data.text };
  if (type === 'snapshot') return { state: data };
  if (type === 'run_failed') return { error: data };
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [camelCase(name), value]));
}

/** The story as far as the log goes by now. Throws what `call` and `tell` throw. */
export async function readOn(story) {
  const { runId, lastSequence } = story.state;
  return (await readLog(runId, lastSequence)).reduce(tell, story);
}

/** The events after number `sequence`, as far as there are any. Throws what `call` throws. */
export async function readLog(runId, sequence) {
  const events = [];
  for (let after = sequence - 1; after !== null;) {
    const page = await call('GET', `/api/runs/${runId}/events?after=${after}`);
    events.push(...page.events.map((row) => toAgentEvent(runId, row)));
    after = page.next;
  }
  return events;
}

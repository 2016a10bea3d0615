// How a run went, in the order in which it can be told. Pure, like the reducer, which it carries: the
// state says what is so, the story keeps what came before what, and what a restart made void.
//
// { state, parts, round, superseded }: parts are { key, kind: 'text', text } and { key, kind: 'tool',
// id }; superseded are { reason, parts, tools, reasoning } of earlier rounds, oldest first.

import { initialAgentState, reduceAgentEvent } from './reducer.mjs';

const ENDED = { done: 'completed', failed: 'failed', cancelled: 'cancelled' };

export const isOver = ({ state }) => state.status !== 'idle' && state.status !== 'running';

export function newStory(runId) {
  return { state: initialAgentState(runId), parts: [], round: 0, superseded: [] };
}

/** The story after `event`; itself if it has that already. Throws ReducerError. */
export function tell(story, event) {
  const state = reduceAgentEvent(story.state, event);
  if (state === story.state) return story;
  const after = { ...story, state };
  if (event.type === 'token_delta') return { ...after, parts: withText(story, event.delta) };
  if (event.type === 'tool_started') return { ...after, parts: withPart(story, { kind: 'tool', id: event.toolCallId }) };
  if (event.type === 'run_restarted') return startedOver(after, story, event.reason);
  if (event.type === 'snapshot') return { ...after, parts: partsOf(state, story.round) };
  return after;
}

/** The story of a turn that is over, as far as the conversation's list tells it. */
export function storyOfRow(row) {
  const state = { status: ENDED[row.status], text: row.output, error: row.error, reason: row.finish_reason };
  return tell(newStory(row.run_id), { runId: row.run_id, sequence: 1, type: 'snapshot', state });
}

function withText({ parts, round }, delta) {
  const last = parts.at(-1);
  if (last?.kind !== 'text') return withPart({ parts, round }, { kind: 'text', text: delta });
  return [...parts.slice(0, -1), { ...last, text: last.text + delta }];
}

function withPart({ parts, round }, part) {
  return [...parts, { key: `${round}.${parts.length}`, ...part }];
}

function startedOver(after, { state, parts, round, superseded }, reason) {
  const { tools, reasoning } = state;
  const earlier = parts.length || reasoning ? [...superseded, { reason, parts, tools, reasoning }] : superseded;
  return { ...after, parts: [], round: round + 1, superseded: earlier };
}

// A snapshot does not say where in the text its tools were called: such parts are no others' parts.
function partsOf({ tools, text }, round) {
  const calls = Object.keys(tools).map((id, index) => ({ key: `${round}.snapshot.${index}`, kind: 'tool', id }));
  if (!text) return calls;
  const key = calls.length ? `${round}.snapshot.text` : `${round}.0`;
  return [...calls, { key, kind: 'text', text }];
}

// What a run looks like after some of its events: a pure projection of the log.
// Twin of runs/reducer.py. The two are held equal, messages included, by
// tests/reducer_cases.json.

const TERMINAL = new Set(['completed', 'failed', 'cancelled']);

/** The event does not fit the state; the state is as it was. */
export class ReducerError extends Error {}

export function initialAgentState(runId) {
  return { runId, status: 'idle', lastSequence: 0, text: '', tools: {}, error: null };
}

/**
 * The state after `event`: a new object, or `state` itself if the event is
 * already in it. Throws ReducerError for an event that does not fit. The order
 * of the checks (run, duplicate, gap, terminal, type) decides which fault is named.
 */
export function reduceAgentEvent(state, event) {
  const { runId, sequence, type } = event;
  if (runId !== state.runId) refuse(`event of run ${runId}, state of run ${state.runId}`);
  if (!Number.isInteger(sequence)) refuse('sequence must be a whole number');
  if (sequence <= state.lastSequence) return state;
  if (sequence !== state.lastSequence + 1 && type !== 'snapshot') {
    refuse(`gap: expected event ${state.lastSequence + 1}, got ${sequence}`);
  }
  if (TERMINAL.has(state.status)) refuse(`event ${sequence} comes after the end of the run (${state.status})`);
  const step = STEPS.get(type);
  if (step === undefined) refuse(`unknown event type ${type}`);
  return { ...step(state, event), lastSequence: sequence };
}

// A Map, because an object would also find `constructor` and `__proto__`.
const STEPS = new Map([
  ['run_started', (state) => {
    if (state.status !== 'idle') refuse(`run_started while the run is ${state.status}`);
    return { ...state, status: 'running' };
  }],
  ['token_delta', (state, event) => {
    checkRunning(state, event);
    return { ...state, text: state.text + string(event, 'delta') };
  }],
  ['reasoning_delta', (state, event) => {
    checkRunning(state, event);
    return { ...state, reasoning: (state.reasoning ?? '') + string(event, 'delta') };
  }],
  ['tool_started', (state, event) => {
    checkRunning(state, event);
    const call = string(event, 'toolCallId');
    const tool = { status: 'running', name: string(event, 'name'), output: null };
    if (Object.hasOwn(state.tools, call)) refuse(`tool ${call} has already started`);
    if (Object.hasOwn(event, 'input')) tool.input = event.input;
    return withTool(state, call, tool);
  }],
  ['tool_completed', (state, event) => {
    const tool = runningTool(state, event);
    return withTool(state, event.toolCallId, { ...tool, status: 'completed', output: event.output ?? null });
  }],
  ['tool_failed', (state, event) => {
    const tool = runningTool(state, event);
    return withTool(state, event.toolCallId, { ...tool, status: 'failed', error: event.error ?? null });
  }],
  ['run_restarted', (state, event) => {
    checkRunning(state, event);
    const { reasoning, ...kept } = state;
    const restarted = { ...kept, text: '', tools: {} };
    if (Object.hasOwn(event, 'inputs')) restarted.inputs = event.inputs;
    return restarted;
  }],
  ['snapshot', (state, event) => {
    const snapshot = event.state;
    if (Object.prototype.toString.call(snapshot) !== '[object Object]') refuse('snapshot needs state, an object');
    const runId = Object.hasOwn(snapshot, 'runId') ? snapshot.runId : state.runId;
    if (runId !== state.runId) refuse(`snapshot of run ${runId}, state of run ${state.runId}`);
    return { ...initialAgentState(runId), ...snapshot };
  }],
  ['run_completed', (state) => ({ ...state, status: 'completed' })],
  ['run_failed', (state, event) => ({ ...state, status: 'failed', error: event.error ?? null })],
  ['run_cancelled', (state, event) => ({ ...state, status: 'cancelled', reason: event.reason ?? null })],
]);

function refuse(message) {
  throw new ReducerError(message);
}

function checkRunning(state, event) {
  if (state.status !== 'running') refuse(`${event.type} while the run is ${state.status}`);
}

function string(event, field) {
  if (typeof event[field] !== 'string') refuse(`${event.type} needs ${field}, a string`);
  return event[field];
}

function runningTool(state, event) {
  checkRunning(state, event);
  const call = string(event, 'toolCallId');
  const tool = Object.hasOwn(state.tools, call) ? state.tools[call] : undefined;
  if (tool?.status !== 'running') refuse(`tool ${call} is not running`);
  return tool;
}

// A computed key makes an own property even of `__proto__`; an assignment would not.
function withTool(state, call, tool) {
  return { ...state, tools: { ...state.tools, [call]: tool } };
}

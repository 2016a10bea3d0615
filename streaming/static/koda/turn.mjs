// What a turn looks like: its inputs, and its answer as the reduced state has it.

import { initialAgentState } from './reducer.mjs';

const STOPPED = { user: 'Stopped by the user.', superseded: 'Stopped for a newer message.' };

export const isOpen = ({ state }) => state.status === 'idle' || state.status === 'running';

export function newTurn(id) {
  const article = document.getElementById('turn').content.cloneNode(true).firstElementChild;
  article.dataset.runId = id;
  return { id, article, inputs: [], state: initialAgentState(id), tries: 0 };
}

export function statusLine({ status, text, tools, inputs, error, reason }) {
  if (status === 'completed') return text ? '' : 'The answer is empty.';
  if (status === 'failed') return `Failed: ${error?.message ?? 'no reason given'}`;
  if (status === 'cancelled') return STOPPED[reason] ?? `Stopped: ${reason}`;
  if (status === 'idle') return 'Waiting…';
  if (text || Object.keys(tools).length) return '';
  return inputs ? 'Starting over…' : 'Thinking…';
}

function element(tag, text, properties) {
  return Object.assign(document.createElement(tag), { textContent: text, ...properties });
}

export function render(turn) {
  const { article, state } = turn;
  const [inputs, text, tools, status] = article.children;
  // Inputs only ever grow, so the longer list is the newer one.
  const shown = state.inputs?.length > turn.inputs.length ? state.inputs : turn.inputs;
  if (inputs.childElementCount !== shown.length) {
    inputs.replaceChildren(...shown.map((input) => element('p', input, { dir: 'auto' })));
  }
  // Appending, where it will do, leaves the reader's selection alone.
  const node = text.firstChild ?? text.appendChild(new Text());
  if (state.text.startsWith(node.data)) node.appendData(state.text.slice(node.length));
  else node.data = state.text;
  text.hidden = !state.text;
  // Tools only while the run is open, so that the page equals the one loaded later.
  tools.replaceChildren(...(isOpen(turn) ? Object.values(state.tools) : [])
    .map((tool) => element('li', tool.name, { className: tool.status })));
  status.textContent = turn.note ?? statusLine(state);
  article.dataset.status = state.status;
  article.ariaBusy = String(isOpen(turn) && !turn.note);
}

// One turn in the page: what was asked, what is being answered, and what can be done with it.

import { element, fromTemplate } from './dom.mjs';
import { Parts } from './parts.mjs';
import { isOver, newStory } from './story.mjs';
import { t } from './texts.mjs';

const STOPPED = new Set(['user', 'superseded']);

export class Turn {
  inputs = [];
  note = ''; // trouble of this page's own
  #shown = {};

  constructor(id) {
    this.id = id;
    this.story = newStory(id);
    this.article = fromTemplate('turn');
    this.article.dataset.runId = id;
    const find = (name) => this.article.querySelector(`.${name}`);
    this.view = {
      heading: find('heading'), inputs: find('inputs'), earlier: find('earlier'), reasoning: find('reasoning'),
      answer: find('answer'), status: find('status'), actions: find('actions'),
    };
    this.parts = new Parts(find('parts'));
  }

  get isOpen() {
    return !isOver(this.story);
  }

  /** What was asked, corrections included. Inputs only ever grow, so the longer list is newer. */
  get asked() {
    const { inputs } = this.story.state;
    return inputs?.length > this.inputs.length ? inputs : this.inputs;
  }

  /** Draws what has changed. `isLast`: it may be answered anew. */
  render({ isLast, number }) {
    const { article, view, story, isOpen, asked } = this;
    const { state, parts, superseded } = story;
    article.dataset.status = state.status;
    this.#when('heading', number, () => { view.heading.textContent = t('turn', { number }); });
    this.#when('inputs', asked.join('\0'), () => view.inputs.replaceChildren(...asked.map(bubble)));
    this.#when('superseded', superseded, () => this.#drawEarlier(superseded));
    this.#when('reasoning', state.reasoning, () => this.#drawReasoning(state.reasoning));
    if (this.#changed('parts', parts) | this.#changed('tools', state.tools) | this.#changed('isOpen', isOpen)) {
      this.parts.update(parts, state.tools, { open: isOpen });
    }
    const said = this.note || statusLine(state);
    this.#when('said', said, () => { view.status.textContent = said; });
    view.answer.ariaBusy = String(isOpen && !this.note);
    this.#when('actions', `${isOpen} ${isLast} ${state.status} ${state.text !== ''}`, () => this.#drawActions(isLast));
  }

  #changed(name, value) {
    if (Object.is(this.#shown[name], value) && name in this.#shown) return false;
    this.#shown[name] = value;
    return true;
  }

  #when(name, value, draw) {
    if (this.#changed(name, value)) draw();
  }

  #drawEarlier(superseded) {
    this.view.earlier.replaceChildren(...superseded.map(({ reason, parts, tools, reasoning }) => {
      const folded = fromTemplate('earlier');
      folded.querySelector('summary').textContent = t(`superseded_${reason}`);
      const body = folded.querySelector('.body');
      if (reasoning) body.append(element('p', { className: 'thoughts', textContent: reasoning }));
      const said = element('div', { className: 'parts' });
      body.append(said);
      new Parts(said).update(parts, tools);
      return folded;
    }));
  }

  #drawReasoning(reasoning) {
    this.view.reasoning.hidden = !reasoning;
    const thoughts = this.view.reasoning.querySelector('.thoughts');
    if (reasoning?.startsWith(thoughts.textContent)) thoughts.append(reasoning.slice(thoughts.textContent.length));
    else thoughts.textContent = reasoning ?? '';
  }

  #drawActions(isLast) {
    const { isOpen, story: { state } } = this;
    const shown = {
      copy: !isOpen && state.text !== '',
      edit: !isOpen && isLast,
      regenerate: !isOpen && isLast && state.status === 'completed',
      retry: !isOpen && isLast && state.status !== 'completed',
    };
    for (const button of this.view.actions.querySelectorAll('[data-act]')) button.hidden = !shown[button.dataset.act];
  }
}

function bubble(text, position) {
  const made = element('p', { dir: 'auto', textContent: text });
  if (position > 0) made.dataset.label = t('correction');
  return made;
}

/** What is said below an answer; empty where the answer speaks for itself. */
export function statusLine({ status, text, tools, reasoning, inputs, error, reason }) {
  if (status === 'completed') return text ? '' : t('empty_answer');
  if (status === 'failed') return t('failed', { why: error?.message ?? t('no_reason') });
  if (status === 'cancelled') return STOPPED.has(reason) ? t(`stopped_${reason}`) : t('stopped', { why: reason });
  if (status === 'idle') return t('waiting');
  if (text || Object.keys(tools).length) return '';
  if (inputs) return t('starting_over');
  return t(reasoning ? 'reasoning_now' : 'thinking');
}

// Editing what was asked: a box for each message of the last turn, in the place of the bubbles.

import { element, fromTemplate } from './dom.mjs';
import { t } from './texts.mjs';

export class Editor {
  #on;
  #form = null;
  #turn = null;

  /** `on`: `save(turn, inputs)`, which answers whether that was accepted. */
  constructor(on) {
    this.#on = on;
  }

  open(turn) {
    this.close();
    this.#turn = turn;
    this.#form = fromTemplate('editor');
    const boxes = turn.asked.map((text, position) => element('textarea', {
      value: text, rows: 2, dir: 'auto', ariaLabel: t('message_number', { number: position + 1 }),
    }));
    this.#form.prepend(...boxes);
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#save(boxes.map(({ value }) => value).filter((value) => value.trim()));
    });
    this.#form.addEventListener('keydown', ({ key }) => key === 'Escape' && this.close());
    this.#form.querySelector('[data-cancel]').addEventListener('click', () => this.close());
    turn.view.inputs.hidden = true;
    turn.view.inputs.after(this.#form);
    boxes[0].focus();
  }

  close() {
    if (!this.#form) return;
    this.#form.remove();
    this.#turn.view.inputs.hidden = false;
    this.#turn.article.querySelector('[data-act="edit"]').focus();
    this.#form = null;
    this.#turn = null;
  }

  async #save(inputs) {
    if (!inputs.length) return;
    const turn = this.#turn;
    if (await this.#on.save(turn, inputs) && this.#turn === turn) {
      this.#form.remove();
      this.#form = null;
    }
  }
}

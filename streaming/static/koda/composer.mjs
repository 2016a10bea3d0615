// The input box: the draft, what a message would do now, sending and stopping.

import { newKey, serverNow } from './api.mjs';
import { t } from './texts.mjs';

const TOUCH = window.matchMedia('(hover: none) and (pointer: coarse)'); // there Enter is for lines
const $ = (id) => document.getElementById(id);
const draftName = (conversation) => `koda.draft:${conversation || 'new'}`;

export class Composer {
  #thread;
  #box = $('message');
  #unsent = {};
  #on;

  /** `on`: `sent(answer)` after a message was taken, `refused(message)`. */
  constructor(thread, on) {
    this.#thread = thread;
    this.#on = on;
    $('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      this.send();
    });
    this.#box.addEventListener('keydown', (event) => {
      // 229: for Safari the Enter that ends a composition is no longer composing.
      if (TOUCH.matches || event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      this.send();
    });
    this.#box.addEventListener('input', () => this.#keep());
    $('stop').addEventListener('click', () => this.stop());
    setInterval(() => this.draw(), 1000);
  }

  /** The draft of the conversation that is shown now. */
  restore() {
    this.#box.value = localStorage.getItem(draftName(this.#thread.id)) ?? '';
    this.#fit();
  }

  focus() {
    this.#box.focus();
  }

  async send(text = this.#box.value) {
    if (!text.trim() || this.#box.readOnly) return;
    const { id } = this.#thread;
    this.#box.readOnly = true;
    this.#on.refused('');
    // Sent again after a failure, the same text is the same message.
    if (this.#unsent.text !== text || this.#unsent.id !== id) this.#unsent = { id, text, key: newKey() };
    try {
      const answer = await this.#thread.send(text, this.#unsent.key);
      this.#unsent = {};
      if (this.#box.value === text) this.#box.value = '';
      localStorage.removeItem(draftName(id));
      if (answer.run.conversation_id === this.#thread.id) this.#on.sent(answer);
    } catch (problem) {
      this.#unsent.id = this.#thread.id;
      this.#on.refused(t('not_sent', { why: problem.message }));
    }
    this.#box.readOnly = false;
    this.#fit();
    this.focus();
  }

  async stop() {
    try {
      if (this.#thread.open.length) await this.#thread.cancel();
    } catch (problem) {
      this.#on.refused(t('not_stopped', { why: problem.message }));
    }
    this.focus();
  }

  draw() {
    const isBusy = this.#thread.open.length > 0;
    const left = this.#left();
    $('stop').hidden = !isBusy;
    $('hint').textContent = this.#hint(isBusy, Math.ceil(left / 1000));
    this.#box.placeholder = t(left ? 'add_something' : 'ask_something');
    $('merge-window').hidden = left === 0;
    $('merge-window').max = this.#thread.mergeWindow;
    $('merge-window').value = left;
  }

  #hint(isBusy, seconds) {
    if (seconds) return t('joins', { seconds });
    if (isBusy) return t('answered_next');
    return TOUCH.matches ? '' : t('enter_sends');
  }

  /** For how many ms a message joins the answer that is being written. */
  #left() {
    const { newest, mergeWindow } = this.#thread;
    if (newest?.story.state.status !== 'running') return 0;
    return Math.max(0, newest.createdAt + mergeWindow - serverNow());
  }

  #keep() {
    if (this.#box.value) localStorage.setItem(draftName(this.#thread.id), this.#box.value);
    else localStorage.removeItem(draftName(this.#thread.id));
    this.#fit();
  }

  // Browsers without `field-sizing` get the height from here.
  #fit() {
    if (CSS.supports('field-sizing', 'content')) return;
    this.#box.rows = Math.min(10, this.#box.value.split('\n').length);
  }
}

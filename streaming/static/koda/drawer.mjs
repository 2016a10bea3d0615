// The list of conversations on a narrow screen: it lies over the page, and takes the keyboard.

export class Drawer {
  #narrow = window.matchMedia('(max-width: 50rem)');
  #side = document.getElementById('side');
  #button = document.getElementById('menu');
  #page = document.getElementById('page');

  constructor() {
    this.#button.addEventListener('click', () => this.#set(true));
    document.getElementById('shade').addEventListener('click', () => this.close());
    document.getElementById('close-menu').addEventListener('click', () => this.close());
    this.#side.addEventListener('keydown', ({ key, target }) => {
      if (key === 'Escape' && !target.closest('form')) this.close();
    });
    this.#narrow.addEventListener('change', () => this.#set(false));
    this.#set(false);
  }

  get isNarrow() {
    return this.#narrow.matches;
  }

  close() {
    if (!document.body.classList.contains('drawer')) return;
    this.#set(false);
    this.#button.focus();
  }

  #set(isOpen) {
    document.body.classList.toggle('drawer', isOpen);
    this.#side.inert = this.isNarrow && !isOpen;
    this.#page.inert = isOpen;
    this.#button.ariaExpanded = String(isOpen);
    if (isOpen) document.getElementById('close-menu').focus();
  }
}

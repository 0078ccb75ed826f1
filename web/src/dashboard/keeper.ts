/** Keeps the list as the store is and as the form asks, without loading the page again. */
import { addressOf, Choice, replaceList } from "./list";
import type { Newest } from "./feed";

const PAUSE_MS = 180;
const SHOWN_MS = 6000;

export class ListKeeper {
  private readonly choice = new Choice();
  private readonly form: HTMLFormElement | null;
  private known: string | null = null;
  private pending = 0;
  private asked = 0;
  private readonly stops: (() => void)[] = [];

  /**
   * @param page the page with the list.
   * @param onFresh told how many runs have joined the list in view.
   */
  constructor(
    private readonly page: Document,
    private readonly onFresh: (count: number) => void,
  ) {
    this.form = page.querySelector<HTMLFormElement>("form.asked");
    this.choice.guard(page);
    this.hear(page, "change", () => this.choice.guard(page));
    if (this.form === null) return;
    this.hear(this.form, "input", () => this.soon());
    this.hear(this.form, "submit", (event) => {
      event.preventDefault();
      this.soon(0);
    });
    this.hear(this.form, "keydown", (event) => this.clear(event as KeyboardEvent));
  }

  /** The server has said what the newest run is; the first word only says what is in view already. */
  follow({ newest, total }: Newest): void {
    const key = `${newest} ${total}`;
    const before = this.known;
    this.known = key;
    // The page may be older than the stream, when the browser went back to it.
    if (before !== null ? before !== key : String(total) !== digits(this.page.getElementById("num-runs"))) void this.refresh(location.href, true);
  }

  /** Stop listening. */
  stop(): void {
    clearTimeout(this.pending);
    for (const stop of this.stops) stop();
  }

  private soon(after = PAUSE_MS): void {
    clearTimeout(this.pending);
    this.pending = window.setTimeout(() => {
      if (this.form === null) return;
      const address = addressOf(this.form);
      history.replaceState(null, "", address);
      void this.refresh(address, false);
    }, after);
  }

  private clear(event: KeyboardEvent): void {
    const field = event.target;
    if (event.key !== "Escape" || !(field instanceof HTMLInputElement)) return;
    if (field.value === "") field.blur();
    else {
      field.value = "";
      event.preventDefault();
      this.soon(0);
    }
  }

  private async refresh(address: string, marks: boolean): Promise<void> {
    const number = ++this.asked;
    const answer = await fetch(address, { headers: { accept: "text/html" } }).catch(() => null);
    if (answer === null || !answer.ok) return;
    const fetched = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (number !== this.asked) return; // a later question has been asked meanwhile
    const fresh = replaceList(this.page, fetched, this.choice);
    if (!marks || fresh.length === 0) return;
    this.onFresh(fresh.length);
    for (const id of fresh) this.page.querySelector(`tr[data-run="${CSS.escape(id)}"]`)?.classList.add("fresh");
    setTimeout(() => {
      for (const row of this.page.querySelectorAll("tr.fresh")) row.classList.remove("fresh");
    }, SHOWN_MS);
  }

  private hear(target: EventTarget, type: string, act: (event: Event) => void): void {
    target.addEventListener(type, act);
    this.stops.push(() => target.removeEventListener(type, act));
  }
}

function digits(element: Element | null): string {
  return (element?.textContent ?? "").replace(/\D/g, "");
}

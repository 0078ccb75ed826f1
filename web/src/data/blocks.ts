/** The data that a page carries: JSON documents, the large ones gzipped and in base64. */

/** Reads the data blocks of one page; each is decoded once, when it is first asked for. */
export class Blocks {
  private readonly kept = new Map<string, Promise<unknown>>();

  constructor(private readonly page: ParentNode) {}

  /** Whether the page carries a block of this name. */
  has(name: string): boolean {
    return this.element(name) !== null;
  }

  /** Names of all blocks that begin so, in the order of the page. */
  names(prefix: string): string[] {
    return [...this.page.querySelectorAll<HTMLElement>("script[data-block]")]
      .map((element) => element.dataset["block"] ?? "")
      .filter((name) => name.startsWith(prefix));
  }

  /** The content of a block. Rejects when the page has none of this name, or it is damaged. */
  read<T>(name: string): Promise<T> {
    let content = this.kept.get(name);
    if (content === undefined) {
      content = this.decode(name);
      this.kept.set(name, content);
    }
    return content as Promise<T>;
  }

  private element(name: string): HTMLElement | null {
    return this.page.querySelector<HTMLElement>(`script[data-block="${CSS.escape(name)}"]`);
  }

  private async decode(name: string): Promise<unknown> {
    const element = this.element(name);
    if (element === null) throw new Error(`this page has no data named ${name}`);
    const text = element.textContent ?? "";
    return JSON.parse(element.dataset["encoding"] === "gzip" ? await gunzip(text.trim()) : text);
  }
}

async function gunzip(base64: string): Promise<string> {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

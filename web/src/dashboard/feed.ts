/** What happens in the store, as the server tells it. */

/** A run under way; made by `store/running.py`. */
export interface Running {
  readonly id: string;
  readonly kind: string;
  readonly target: string;
  readonly stage: string;
  readonly share: number | null;
  readonly num_samples: number | null;
  readonly step_s: number | null;
  /** Time since the start and how long a step took then; empty in what is told as it happens. */
  readonly course: readonly (readonly [number, number])[];
}

/** With how long it had been when the server said so. */
export interface RunningNow {
  readonly running: Running;
  readonly elapsed_s: number;
}

/** What tells one state of the list from another. */
export interface Newest {
  readonly newest: string | null;
  readonly total: number;
}

/** Whether the page is told what happens: `lost` comes back by itself, `ended` once the new address of the server was opened. */
export type Link = "live" | "lost" | "ended";

/** Runs that are going on, as `/events` and `/api/running` tell of them. */
export interface RunningRuns {
  readonly running: readonly RunningNow[];
}

/** What is going on now, each with its course so far; nothing when the server does not answer. */
export async function askRunning(): Promise<readonly RunningNow[]> {
  const answer = await fetch("/api/running").catch(() => null);
  return answer?.ok ? ((await answer.json()) as RunningRuns).running : [];
}

const AGAIN_MS = 3000;

/**
 * Listen while the page can be seen: a browser allows few streams to one server. Returns how to stop.
 *
 * @param heard what is done with the data of each event.
 * @param onLink told whether the page is told.
 */
export function listen(address: string, heard: Readonly<Record<string, (data: unknown) => void>>, onLink: (link: Link) => void): () => void {
  let source: EventSource | null = null;
  let again = 0;
  const close = (): void => {
    clearTimeout(again);
    source?.close();
    source = null;
  };
  const open = (): void => {
    if (source !== null || document.hidden) return;
    const opened = new EventSource(address);
    source = opened;
    opened.onopen = () => onLink("live");
    opened.onerror = () => {
      const ended = opened.readyState === EventSource.CLOSED; // refused: the server was started anew, with another token
      onLink(ended ? "ended" : "lost");
      if (!ended) return;
      close();
      again = window.setTimeout(open, AGAIN_MS);
    };
    for (const [event, hear] of Object.entries(heard)) opened.addEventListener(event, ({ data }) => hear(JSON.parse(data as string)));
  };
  const follow = (): void => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", close); // else the page could not be kept for going back
  addEventListener("pageshow", open);
  open();
  return () => {
    document.removeEventListener("visibilitychange", follow);
    removeEventListener("pagehide", close);
    removeEventListener("pageshow", open);
    close();
  };
}

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

/** Whether the page is told what happens: `lost` comes back by itself, `ended` does not. */
export type Link = "live" | "lost" | "ended";

/** Who listens. */
export interface Listener {
  readonly onRuns: (newest: Newest) => void;
  readonly onRunning: (running: readonly RunningNow[]) => void;
  readonly onLink: (link: Link) => void;
}

/** What is going on now, each with its course so far; nothing when the server does not answer. */
export async function askRunning(): Promise<readonly RunningNow[]> {
  const answer = await fetch("/api/running").catch(() => null);
  return answer?.ok ? ((await answer.json()) as { running: RunningNow[] }).running : [];
}

/** Listen while the page can be seen: a browser allows few streams to one server. Returns how to stop. */
export function listen(address: string, listener: Listener): () => void {
  let source: EventSource | null = null;
  const close = (): void => {
    source?.close();
    source = null;
  };
  const open = (): void => {
    if (source !== null || document.hidden) return;
    const opened = new EventSource(address);
    source = opened;
    opened.onopen = () => listener.onLink("live");
    opened.onerror = () => listener.onLink(opened.readyState === EventSource.CLOSED ? "ended" : "lost");
    opened.addEventListener("runs", (event) => listener.onRuns(JSON.parse(event.data) as Newest));
    opened.addEventListener("running", (event) => listener.onRunning((JSON.parse(event.data) as { running: RunningNow[] }).running));
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

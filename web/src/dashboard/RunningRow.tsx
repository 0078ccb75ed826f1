/** A run under way in one line: what, how far, for how long. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { formatCount, formatSeconds } from "../data/quantity";
import { t } from "../i18n/language";
import { clock, shownShare } from "./course";
import type { RunningNow } from "./feed";

interface Props {
  readonly now: RunningNow;
  /** Seconds since the server said so. */
  readonly since_s: number;
  /** On its own page: without the name of the target, which stands above it. */
  readonly alone?: boolean;
}

export function RunningRow({ now, since_s, alone = false }: Props): JSX.Element {
  const { id, kind, target, stage, share, num_samples, step_s } = now.running;
  const done = shownShare(share);
  return (
    <div class="running">
      <span class="kind">{kind}</span>
      {!alone && (
        <a class="target" href={`/running/${encodeURIComponent(id)}`}>
          {target}
        </a>
      )}
      <span class="stage">
        {stage}
        {num_samples !== null && ` · ${t("{count} samples", { count: formatCount(num_samples) })}`}
        {step_s !== null && ` · ${t("last step {time}", { time: formatSeconds(step_s) })}`}
      </span>
      <progress aria-label={t("How far {target} is", { target })} max={1} {...(done === null ? {} : { value: done })} />
      <span class="elapsed" role="timer">
        {clock(now.elapsed_s + since_s)}
      </span>
    </div>
  );
}

/** Seconds since something was received, counted on while it is shown. */
export function useTicking(counts: boolean, received: { readonly current: number }): number {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!counts) return;
    const timer = setInterval(() => tick((number) => number + 1), 1000);
    return () => clearInterval(timer);
  }, [counts]);
  return (performance.now() - received.current) / 1000;
}

/** The way of a batch as a picture: workers make it, the queue keeps it, the step takes it. */
import type { JSX } from "preact";
import { formatSeconds, significant } from "../../data/quantity";
import { t } from "../../i18n/language";
import { shareSaid } from "../memory/model";
import { aroundQueue, type Lane, lasting, type LoadingView, type Queue, slotsOf, type Station } from "./model";

export function Pipeline({ view }: { readonly view: LoadingView }): JSX.Element {
  const { before, behind } = aroundQueue(view.lanes);
  const most = Math.max(1e-12, ...view.lanes.flatMap(({ stations }) => stations.map(({ per_step_s }) => per_step_s)));
  return (
    <ol class="pipeline" aria-label={t("The way of a batch")}>
      {(before.length > 0 || view.queue !== null) && (
        <li class="making">
          <ol>
            {before.map((lane) => <Process key={lane.where} lane={lane} most={most} />)}
            {view.queue !== null && <QueueOf queue={view.queue} />}
          </ol>
        </li>
      )}
      {behind.map((lane) => <Process key={lane.where} lane={lane} most={most} />)}
    </ol>
  );
}

function Process({ lane, most }: { readonly lane: Lane; readonly most: number }): JSX.Element {
  return (
    <li class={`process${lane.count > 1 ? " several" : ""}`}>
      <p class="name">
        {t(lane.title)} <small>{formatSeconds(lane.total_s)} {lane.count > 1 ? t("per step in each, {pace} together", { pace: formatSeconds(lane.pace_s) }) : t("per step")}</small>
      </p>
      <ol>{lasting(lane).map((station) => <StationOf key={station.name} station={station} most={most} />)}</ol>
    </li>
  );
}

function StationOf({ station, most }: { readonly station: Station; readonly most: number }): JSX.Element {
  const { name, doing, slot, per_step_s, share, cpu_share, mark, meaning } = station;
  return (
    <li class={`station ${doing.replace(" ", "-")}${mark === "" ? "" : " holds-back"}`} title={t(meaning)}>
      <b>{t(name)}</b>
      <span>{formatSeconds(per_step_s)}</span>
      <small>{ofStep(share)}</small>
      {cpu_share !== null && cpu_share > 0 && (
        <small>{cpu_share > 1 ? t("on {n} CPUs", { n: significant(cpu_share) }) : t("{share} on a CPU", { share: shareSaid(cpu_share) })}</small>
      )}
      {mark !== "" && <em>▲ {t(mark)}</em>}
      <i class="level" aria-hidden="true"><i class={`slot-${slot}`} style={{ width: `${Math.max(1, (per_step_s / most) * 100)}%` }} /></i>
    </li>
  );
}

/** A share of the step; what runs beside the step may take longer than it. */
export function ofStep(share: number): string {
  return share > 1 ? t("{ratio}× the step", { ratio: significant(share) }) : t("{share} of the step", { share: shareSaid(share) });
}

function QueueOf({ queue }: { readonly queue: Queue }): JSX.Element {
  const { drawn, full } = slotsOf(queue);
  return (
    <li class="process queue">
      <p class="name">{t("queue")}</p>
      <div class="slots" aria-hidden="true">
        {Array.from({ length: drawn }, (_, i) => (
          <i key={i}><i style={{ width: `${Math.min(1, Math.max(0, full - i)) * 100}%` }} /></i>
        ))}
      </div>
      <small>{t(queue.said)}</small>
    </li>
  );
}

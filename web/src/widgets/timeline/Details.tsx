/** Everything that is known of the selected slice. */
import type { ComponentChildren, JSX } from "preact";
import { useMemo } from "preact/hooks";
import { kindWords } from "../../canvas/kinds";
import { formatCount, formatNs } from "../../data/quantity";
import { t } from "../../i18n/language";
import { busyOf, eventsOf, kindOf, laneOf, launchedBy, nameOf, type Scene, selfOf, sourceOf, titleOf } from "./scene";
import type { Looking } from "./state";
import { namesakesOf } from "./sums";
import { momentOf } from "./ticks";

interface Props {
  readonly scene: Scene;
  readonly slice: number;
  readonly looking: Looking;
}

export function Details({ scene, slice, looking }: Props): JSX.Element {
  const { content } = scene;
  const [start, end] = [scene.start[slice] ?? 0, scene.end[slice] ?? 0];
  const [source, self, events] = [sourceOf(scene, slice), selfOf(scene, slice), eventsOf(scene, slice)];
  const launched = useMemo(() => launchedBy(scene, slice), [scene, slice]);
  const same = useMemo(() => namesakesOf(scene, scene.label[slice] ?? 0), [scene, slice]);
  const track = content.tracks[laneOf(scene, slice)?.track ?? 0];
  const step = content.steps.find((one) => start >= one.start_ns && start < one.end_ns);
  const works = launched.reduce((sum, work) => sum + busyOf(scene, work), 0);
  return (
    <section class="timeline-details" aria-label={t("Selected slice")}>
      <header>
        <strong><bdi>{titleOf(scene, slice)}</bdi></strong>
        <span class="tools">
          <button type="button" title="F" onClick={() => looking.zoomTo(slice)}>
            {t("Zoom to it")}
          </button>
          <button type="button" onClick={() => looking.setFind(nameOf(scene, slice))}>
            {t("Find all of this name")}
          </button>
          <button type="button" aria-label={t("Close")} title="Escape" onClick={() => looking.select(-1)}>
            ×
          </button>
        </span>
      </header>
      <dl class="facts">
        <Fact name="Kind">{t(kindWords(kindOf(scene, slice)))}</Fact>
        <Fact name="Track">
          {track?.name} <span>{track?.process}</span>
        </Fact>
        <Fact name="Duration">
          {formatNs(end - start)}{" "}
          {self !== null && <span>{t("{self} its own, the rest in what it calls", { self: formatNs(self) })}</span>}
        </Fact>
        <Fact name="Begins">
          {momentOf(start)} <span>{step === undefined ? t("outside of all steps") : t("in {step}", { step: step.name })}</span>
        </Fact>
        {events > 1 && (
          <Fact name="Stands for">
            {t("{count} short slices", { count: formatCount(events) })}{" "}
            <span>{t("{busy} of work, the rest is gaps between them", { busy: formatNs(busyOf(scene, slice)) })}</span>
          </Fact>
        )}
        {source >= 0 && (
          <Fact name="Launched by">
            <bdi>{titleOf(scene, source)}</bdi> <span>{t("{delay} before", { delay: formatNs(start - (scene.start[source] ?? 0)) })}</span>{" "}
            <button type="button" class="link" onClick={() => looking.show(source)}>
              {t("Go to launch")}
            </button>
          </Fact>
        )}
        {launched.length > 0 && (
          <Fact name="Launched">
            {launched.length === 1 ? <bdi>{titleOf(scene, launched[0] ?? -1)}</bdi> : t("{count} slices", { count: formatCount(launched.length) })}{" "}
            <span>{formatNs(works)}</span>{" "}
            <button type="button" class="link" onClick={() => looking.show(launched[0] ?? -1)}>
              {t("Go to what it launched")}
            </button>
          </Fact>
        )}
        <Fact name="All of this name">
          {t("{count} in {sum}", { count: formatCount(same.count), sum: formatNs(same.sum) })}{" "}
          {same.count > 1 && (
            <span>{t("{mean} on average; drawn ones {least} to {most}", {
              mean: formatNs(same.sum / same.count), least: formatNs(same.least), most: formatNs(same.most),
            })}</span>
          )}
        </Fact>
      </dl>
    </section>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{t(name)}</dt>
      <dd>{children}</dd>
    </div>
  );
}

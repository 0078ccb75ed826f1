/** How the median step time went from run to run. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { t } from "../../i18n/language";
import { Chart } from "../charts/Chart";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";
import { drawHistory, taken } from "./draw";
import type { HistoryView, PastRun } from "./view";

export function History({ blocks, place }: WidgetProps): JSX.Element {
  return (
    <Loaded<HistoryView> blocks={blocks} name={place["block"] ?? "history"}>
      {(view) => <Runs view={view} served={place["dashboard"] !== undefined} />}
    </Loaded>
  );
}

function Runs({ view, served }: { readonly view: HistoryView; readonly served: boolean }): JSX.Element {
  const [chosen, choose] = useState<number | null>(null);
  const run = chosen === null ? undefined : view.runs[chosen];
  const changes = view.runs.filter(({ change }) => change !== null).length;
  return (
    <Chart
      title={served ? "Runs of this target" : "Earlier runs of this target"}
      how="Each point is the median step of one run on this machine, its bar the interval; a ring marks the run of this page. A triangle marks a run whose interval lies apart from that of the run before: upwards is slower. A click shows which run it is."
      change="The runs were taken at different moments, so that the machine may have changed as much as the program: a marked change is for the eye and no verdict. To decide it, run both commits in turns with pyrometer bench --vs."
      label={t("{count} runs, {changes} marked changes", { count: view.runs.length, changes })}
      name="history"
      across
      draw={(width) => drawHistory(view, width)}
      onOpen={choose}
      below={run !== undefined && <Chosen run={run} served={served} />}
    />
  );
}

function Chosen({ run, served }: { readonly run: PastRun; readonly served: boolean }): JSX.Element {
  return (
    <p class="run-chosen" role="status">
      {t("Run")} {served ? <a href={`/runs/${encodeURIComponent(run.run_id)}`}>{run.run_id}</a> : <code>{run.run_id}</code>} · {taken(run)}
      {run.commit_sha !== null && (
        <>
          {" · "}
          {t("commit")} <code>{run.commit_sha.slice(0, 12)}</code>
        </>
      )}
      {run.headline !== "" && ` · ${run.headline}`}
    </p>
  );
}

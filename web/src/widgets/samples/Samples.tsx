/** The quality of a measurement: how its samples are spread, how they follow each other, how much they tell. */
import type { JSX } from "preact";
import { formatCount, formatSeconds, formatShare, significant } from "../../data/quantity";
import { t } from "../../i18n/language";
import { Chart } from "../charts/Chart";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";
import { drawBlocks } from "./blocks";
import { drawCourse } from "./course";
import { drawLags } from "./lags";
import { drawSpread } from "./spread";
import type { Correlogram, Course, MeasurementView, Spread } from "./view";

export function Samples({ blocks, place }: WidgetProps): JSX.Element {
  return (
    <Loaded<MeasurementView> blocks={blocks} name={place["block"] ?? "measurement"}>
      {(view) => (
        <>
          {view.spread !== null && <SpreadChart view={view} spread={view.spread} />}
          {view.course !== null && <CourseChart view={view} course={view.course} />}
          <div class="pair">
            {view.course !== null && view.course.blocks.length > 1 && <BlocksChart view={view} course={view.course} />}
            {view.correlogram !== null && <LagsChart view={view} lags={view.correlogram} />}
          </div>
        </>
      )}
    </Loaded>
  );
}

function SpreadChart({ view, spread }: { readonly view: MeasurementView; readonly spread: Spread }): JSX.Element {
  const missed = view.deadline_missed_share;
  return (
    <Chart
      title="How long a step takes"
      how="Each bar counts the samples of about that duration; the curve below gives the share of samples that take at most so long. The solid line is the median and the band its interval, dashed lines are the tail and, where there is one, the deadline. Point at any duration to read both."
      change="A second hump, which is a steep part of the curve with a level part before it, means two kinds of steps: shapes, cache states, another program. A median does not describe those. If the band is wider than the difference that matters to you, measure longer."
      label={t("Distribution of {count} samples: median {median}, from {low} to {high}", {
        count: formatCount(view.num_samples),
        median: formatSeconds(view.median_s),
        low: formatSeconds(view.low_s),
        high: formatSeconds(view.high_s),
      })}
      name={`${view.name}-distribution`}
      across
      draw={(width) => drawSpread(spread, view, width)}
      below={
        <>
          {missed !== null && view.deadline_s !== null && (
            <p class="note">
              {t("{share} of the samples take longer than the deadline of {deadline}.", {
                share: missed === 0 ? "0 %" : formatShare(missed),
                deadline: formatSeconds(view.deadline_s),
              })}
            </p>
          )}
          {view.steps_per_sample > 1 && (
            <p class="note">
              {t("A sample is the mean of {steps} steps, so that single slow steps show up weakened.", { steps: view.steps_per_sample })}
            </p>
          )}
        </>
      }
    />
  );
}

function CourseChart({ view, course }: { readonly view: MeasurementView; readonly course: Course }): JSX.Element {
  return (
    <Chart
      title="Step time in the order it was measured"
      how="Squares are warm-up steps, which no figure includes, on an axis of their own; neither axis starts at zero. Dots are samples; their two colours mark blocks, stretches of equally many samples, and each short line is the median of a block. Triangles are outliers, at the upper edge where they are beyond the axis. The dashed line is the drift."
      change="A slope or a jump means that the program, or the machine, was not in one state: the median then depends on how long one looks. Outliers at equal distances point to something periodic, such as garbage collection or another program."
      label={t("{count} samples in time order, median {median}", {
        count: formatCount(view.num_samples),
        median: formatSeconds(view.median_s),
      })}
      name={`${view.name}-over-time`}
      across
      draw={(width) => drawCourse(course, view, width)}
      below={
        <>
          {course.trend !== null && <p class="note">{trendWords(course)}</p>}
          {course.thinned !== null && <p class="note">{t(course.thinned)}</p>}
        </>
      }
    />
  );
}

function BlocksChart({ view, course }: { readonly view: MeasurementView; readonly course: Course }): JSX.Element {
  return (
    <Chart
      title="Medians of the blocks"
      how="Each point is the median of one stretch of samples, its bar the 95 % interval; the band is the interval of the whole median. A point without a bar has too few independent samples for one. The axis shows only their range, and a bar may leave it."
      change="Bars that lie apart from each other mean that the step time changed while it was measured: then no single figure holds."
      label={t("Medians of {count} blocks", { count: course.blocks.length })}
      name={`${view.name}-blocks`}
      across
      draw={(width) => drawBlocks(course, view, width)}
    />
  );
}

function LagsChart({ view, lags }: { readonly view: MeasurementView; readonly lags: Correlogram }): JSX.Element {
  return (
    <Chart
      title="How alike neighbouring samples are"
      how="Autocorrelation: 1 means that samples so many places apart move together, 0 that they have nothing to do with each other. Independent samples stay in the shaded band at 95 % of the distances; thick bars leave it."
      change="Slowly falling bars mean that the machine's state wanders and that each sample tells less: the interval of the median is widened for that. A bar that returns at equal distances shows a period."
      label={t("Autocorrelation at {count} distances, {beyond} beyond the band", { count: lags.values.length, beyond: lags.beyond })}
      name={`${view.name}-autocorrelation`}
      across
      draw={(width) => drawLags(lags, width)}
      below={
        <p class="note">
          {t("{count} samples tell as much as {effective} independent ones; {beyond} of {lags} distances leave the band.", {
            count: formatCount(view.num_samples),
            effective: formatCount(Math.round(view.effective_num_samples)),
            beyond: lags.beyond,
            lags: lags.values.length,
          })}
        </p>
      }
    />
  );
}

function trendWords({ trend, blocks }: Course): string {
  if (trend === null) return "";
  const values = { change: signed(trend.change), blocks: blocks.length };
  if (trend.low === null || trend.high === null) {
    return t("Drift: {change} from the first block to the last of {blocks}, without a useful interval: {trend}.", { ...values, trend: t(trend.trend) });
  }
  const [low, high] = [signed(trend.low), signed(trend.high)];
  return t("Drift: {change} ({low} to {high}) from the first block to the last of {blocks}: {trend}.", {
    ...values,
    low,
    high,
    trend: t(trend.trend),
  });
}

/** A change in per cent, with its sign. */
export function signed(share: number): string {
  return `${share > 0 ? "+" : share < 0 ? "−" : ""}${significant(Math.abs(share * 100), Math.abs(share) < 0.001 ? 2 : 3)} %`;
}

/** How long a step takes, while it is being measured. */
import type { JSX } from "preact";
import { formatSeconds } from "../data/quantity";
import { t } from "../i18n/language";
import { BELOW_TITLED, leftOf, XAxis, YAxis } from "../widgets/charts/Axes";
import { Chart, type Drawing } from "../widgets/charts/Chart";
import { dots, polyline } from "../widgets/charts/marks";
import { axisAround, plain, scaleOf, seconds } from "../widgets/charts/scale";
import { clock, type Moment, stepAxis } from "./course";

const [TOP, HEIGHT, RIGHT] = [12, 180, 16];

export function CourseChart({ course }: { readonly course: readonly Moment[] }): JSX.Element | null {
  if (course.length < 2) return <p class="note">{t("A drawing appears here once steps are timed.")}</p>;
  const last = course.at(-1);
  return (
    <Chart
      title="Step time so far"
      how="Each point is the last step before the run spoke, at most twice a second. The line joins them."
      change="Single steps scatter, and steps while warming up are slow: the result rests on all of them and comes at the end."
      label={t("{count} points, the last {time}", { count: course.length, time: formatSeconds(last?.step_s ?? 0) })}
      name="running"
      across
      draw={(width) => drawn(course, width)}
    />
  );
}

function drawn(moments: readonly Moment[], width: number): Drawing {
  const bottom = TOP + HEIGHT;
  const up = scaleOf(stepAxis(moments), bottom, TOP);
  const left = leftOf(up, seconds);
  const across = scaleOf(axisAround(moments.map(({ elapsed_s }) => elapsed_s), 0.02), left, width - RIGHT);
  const places = moments.map(({ elapsed_s, step_s }) => [across(elapsed_s), up(step_s)] as const);
  return {
    height: bottom + BELOW_TITLED,
    spots: moments.map(({ elapsed_s, step_s }, i) => ({
      x: places[i]?.[0] ?? 0,
      y: places[i]?.[1] ?? 0,
      lines: [formatSeconds(step_s), t("{time} after the start", { time: clock(elapsed_s) })],
    })),
    body: (
      <g>
        <YAxis scale={up} unit={seconds} left={left} right={width - RIGHT} />
        <XAxis scale={across} unit={plain} top={TOP} bottom={bottom} title={t("Seconds since the start")} />
        <path class="series" d={polyline(places)} />
        <path class="course" d={dots(places)} />
      </g>
    ),
  };
}

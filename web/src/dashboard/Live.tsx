/** The live part of the dashboard: above the list what is going on, on a page of its own how a run goes. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n/language";
import type { WidgetProps } from "../widgets/widget";
import { CourseChart } from "./CourseChart";
import { extended, joined, type Moment } from "./course";
import { askRunning, type Link, listen, type Newest, type RunningNow, type RunningRuns } from "./feed";
import { ListKeeper } from "./keeper";
import { Lamp } from "./Lamp";
import { RunningRow, useTicking } from "./RunningRow";

export function Live({ place }: WidgetProps): JSX.Element {
  return place["part"] === "run" ? <OneRun id={place["run"] ?? ""} /> : <Going />;
}

/** Runs that are going on, above the list that they will join. */
function Going(): JSX.Element {
  const [running, setRunning] = useState<readonly RunningNow[]>([]);
  const [link, setLink] = useState<Link>("lost");
  const [said, say] = useState("");
  const received = useRef(performance.now());
  useEffect(() => {
    const keeper = new ListKeeper(document, (fresh) => say(t("{count} new", { count: fresh })));
    const stop = listen("/events", {
      runs: (newest) => keeper.follow(newest as Newest),
      running: (now) => {
        received.current = performance.now();
        setRunning((now as RunningRuns).running);
      },
    }, setLink);
    return () => {
      stop();
      keeper.stop();
    };
  }, []);
  const since_s = useTicking(running.length > 0, received);
  return (
    <>
      <Lamp link={link} said={said} />
      {running.length > 0 && (
        <ul class="going" aria-label={t("Going on")}>
          {running.map((now) => (
            <li key={now.running.id}>
              <RunningRow now={now} since_s={since_s} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** One run; when it is over, the server knows where its report is. */
function OneRun({ id }: { readonly id: string }): JSX.Element {
  const [now, setNow] = useState<RunningNow | null>(null);
  const [course, setCourse] = useState<readonly Moment[]>([]);
  const [link, setLink] = useState<Link>("lost");
  const received = useRef(performance.now());
  useEffect(() => {
    void askRunning().then((all) => {
      const mine = all.find(({ running }) => running.id === id);
      if (mine !== undefined) setCourse((heard) => joined(mine.running, heard));
    });
  }, [id]);
  useEffect(
    () =>
      listen("/events", {
        running: (all) => {
          const mine = (all as RunningRuns).running.find(({ running }) => running.id === id);
          if (mine === undefined) return location.reload();
          received.current = performance.now();
          setNow(mine);
          setCourse((before) => extended(before, mine));
        },
      }, setLink),
    [id],
  );
  const since_s = useTicking(now !== null, received);
  return (
    <>
      <Lamp link={link} said="" live="Live: the report opens once it is stored" />
      {now !== null && <RunningRow now={now} since_s={since_s} alone />}
      <CourseChart course={course} />
    </>
  );
}

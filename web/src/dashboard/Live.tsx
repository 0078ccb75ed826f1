/** The live part of the dashboard: above the list what is going on, on a page of its own how a run goes. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n/language";
import type { WidgetProps } from "../widgets/widget";
import { CourseChart } from "./CourseChart";
import { extended, joined, type Moment } from "./course";
import { askRunning, type Link, listen, type Newest, type RunningNow } from "./feed";
import { ListKeeper } from "./keeper";
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
      onRuns: (newest: Newest) => keeper.follow(newest),
      onRunning: (now) => {
        received.current = performance.now();
        setRunning(now);
      },
      onLink: setLink,
    });
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
        onRuns: () => undefined,
        onRunning: (all) => {
          const mine = all.find(({ running }) => running.id === id);
          if (mine === undefined) return location.reload();
          received.current = performance.now();
          setNow(mine);
          setCourse((before) => extended(before, mine));
        },
        onLink: setLink,
      }),
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

const SAID: Readonly<Record<Link, string>> = {
  live: "Live: new runs appear by themselves",
  lost: "Not connected; trying again",
  ended: "No longer live: open the address that pyrometer ui printed last",
};

/** Whether the page is told what happens; a shape and words beside the colour. */
function Lamp({ link, said, live = SAID.live }: { readonly link: Link; readonly said: string; readonly live?: string }): JSX.Element {
  return (
    <p class={`lamp ${link}`} role="status">
      <span aria-hidden="true">{link === "live" ? "●" : "○"}</span> {t(link === "live" ? live : SAID[link])}
      {said !== "" && ` · ${said}`}
    </p>
  );
}

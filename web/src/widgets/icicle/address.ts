/** Keeps what the reader looks at in the page's address. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { leaveOut } from "../../shell/notice";
import { type Changes, note, noteSome, parseRoute, type Route } from "../../shell/router";
import { FIRST_LOOK, formatLook, type Look, LOOK_KEYS, parseLook, wrongIn } from "./look";

/** No parameter says anything of the look. */
const NOT_ASKED: Changes = Object.fromEntries(LOOK_KEYS.map((key) => [key, null]));

/** The look that the address names, and how to change it; other parts of the page keep their parameters. */
export function useLook(page: string, route: Route): [Look, (change: Partial<Look>) => void] {
  const [look, setLook] = useState(() => lookOf(page, parseRoute(location.hash) ?? route) ?? FIRST_LOOK);
  const now = useRef(look);
  const seen = useRef(route);
  useEffect(() => {
    if (route.page === page) leaveOut(wrongIn(route.parameters));
  }, []);
  useEffect(() => {
    if (seen.current === route || route.page !== page) return;
    seen.current = route;
    const named = lookOf(page, route);
    leaveOut(named === null ? [] : wrongIn(route.parameters));
    if (named === null && route.from !== page) return note(page, { ...route.parameters, ...formatLook(now.current) });
    now.current = named ?? FIRST_LOOK;
    setLook(now.current);
  }, [route]);
  const change = useCallback(
    (wanted: Partial<Look>) => {
      now.current = { ...now.current, ...wanted };
      setLook(now.current);
      noteSome(page, { ...NOT_ASKED, ...formatLook(now.current) });
    },
    [page],
  );
  return [look, change];
}

/** What a route says of the look; null when it says nothing, so that who comes back finds all as it was. */
function lookOf(page: string, route: Route): Look | null {
  const told = route.page === page && LOOK_KEYS.some((key) => key in route.parameters);
  return told ? parseLook(route.parameters) : null;
}

import { expect, it } from "vitest";
import { formatRoute, parseRoute } from "../src/shell/router";

it("reads back the routes that it writes", () => {
  const route = { page: "timeline", parameters: { from: "1.5", select: "aten::mm <&>" } };
  expect(parseRoute(formatRoute(route))).toEqual(route);
});

it("leaves ordinary anchors alone", () => {
  expect(parseRoute("#environment")).toBeNull();
  expect(parseRoute("")).toBeNull();
});

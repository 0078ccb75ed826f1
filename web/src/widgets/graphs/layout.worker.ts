/** Runs in a worker, whose script travels as text in the page: arranges boxes by dagre. */
import { Graph, layout } from "@dagrejs/dagre";
import type { Arranged, ToArrange } from "./layout";

/** The build puts here what reads the script's text from the page's data, for the page that imports it. */
export default (): Promise<string> => Promise.reject(new Error("the script is data of a page"));

globalThis.onmessage = (event: MessageEvent<ToArrange>): void => {
  try {
    postMessage(arranged(event.data));
  } catch (error) {
    postMessage({ failure: String(error) });
  }
};

function arranged({ sizes, edges }: ToArrange): Arranged {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, edgesep: 10, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  sizes.forEach(([width, height], box) => graph.setNode(String(box), { width, height }));
  edges.forEach(([source, target], edge) => graph.setEdge(String(source), String(target), {}, String(edge)));
  layout(graph);
  const tenth = (length: number): number => Math.round(length * 10) / 10;
  const boxes = sizes.map((_, box) => graph.node(String(box)));
  const points = edges.map(([source, target], edge) => {
    const { points: bends } = graph.edge(String(source), String(target), String(edge)) as { points: { x: number; y: number }[] };
    return bends.flatMap(({ x, y }) => [tenth(x), tenth(y)]);
  });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const finite = (length: number): number => (Number.isFinite(length) ? length : 0);
  return {
    x: boxes.map(({ x, width: wide }) => tenth(x - wide / 2)),
    y: boxes.map(({ y, height: high }) => tenth(y - high / 2)),
    points,
    width: finite(width),
    height: finite(height),
  };
}

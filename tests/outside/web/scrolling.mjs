// Scrolls like a user, with wheel and fling, and records how smooth it is.

const FRAME_LATE_MS = 50;
const TASK_LONG_MS = 50;

/** Distance and speed. */
export const READING = { name: "reading", step: 120, perSecond: 12, distance: 2_400 };
export const WHEEL = { name: "wheel", step: 120, perSecond: 60, distance: 24_000 };
export const FLING = { name: "fling", speed: 8_000, distance: 32_000 };
export const UP = -1;
export const DOWN = 1;

/**
 * Moves the wheel over an element and gives what was seen: times between frames, tasks of the page, and how far rows
 * were moved against the wheel, which is a jump under the eyes of a reader.
 */
export async function scroll(page, element, way, direction) {
  const box = await element.boundingBox();
  const at = { x: box.x + box.width / 2, y: Math.max(box.y, 0) + Math.min(box.height, page.viewportSize().height) / 2 };
  await page.mouse.move(at.x, at.y);
  await page.evaluate(record, direction);
  const tasks = await tasksOf(page, () => (way.speed ? fling(page, at, way, direction) : turn(page, way, direction)));
  return { ...(await page.evaluate(() => window.endRecording())), tasks };
}

async function turn(page, { step, perSecond, distance }, direction) {
  let next = performance.now();
  for (let gone = 0; gone < distance; gone += step) {
    await page.mouse.wheel(0, direction * step);
    next += 1_000 / perSecond;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())));
  }
}

async function fling(page, at, { speed, distance }, direction) {
  const session = await page.context().newCDPSession(page);
  await session.send("Input.synthesizeScrollGesture", { ...at, yDistance: -direction * distance, speed, gestureSourceType: "mouse" });
  await session.detach();
}

/** Runs in the page. */
function record(direction) {
  const seen = { frames: [], back: 0, moved: 0, rows: new Map() };
  // A message that a frame sends arrives when the frame was drawn, with every row where it was drawn.
  const drawn = new MessageChannel();
  drawn.port1.onmessage = () => {
    const rows = new Map();
    for (const row of document.querySelectorAll("[data-index]")) {
      const { top, bottom } = row.getBoundingClientRect();
      if (bottom > 0 && top < window.innerHeight) rows.set(row.textContent, top);
    }
    let step = 0;
    for (const [text, top] of rows) {
      const against = (top - (seen.rows.get(text) ?? top)) * direction;
      seen.back = Math.max(seen.back, against);
      step = Math.max(step, -against);
    }
    seen.moved += step;
    seen.rows = rows;
  };
  let last = performance.now();
  let next = requestAnimationFrame(function frame(now) {
    seen.frames.push(now - last);
    last = now;
    drawn.port2.postMessage(null);
    next = requestAnimationFrame(frame);
  });
  window.endRecording = () => {
    cancelAnimationFrame(next);
    drawn.port1.close();
    return { frames: seen.frames.slice(1), back: Math.round(seen.back), moved: Math.round(seen.moved) };
  };
}

/** Tasks of the page's main thread during an action: duration and CPU time of each. */
export async function tasksOf(page, act) {
  const session = await page.context().browser().newBrowserCDPSession();
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  await session.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: ["toplevel"] } });
  await act();
  const complete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  await session.send("Tracing.end");
  await complete;
  await session.detach();
  const place = ({ pid, tid }) => `${pid} ${tid}`;
  const threads = events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(place);
  const tasks = events.filter(({ name, ph }) => ph === "X" && name.endsWith("RunTask"));
  const [own] = threads.map((thread) => tasks.filter((task) => place(task) === thread)).sort((a, b) => b.length - a.length);
  return own.map(({ dur, tdur }) => ({ tookMs: dur / 1_000, computedMs: (tdur ?? 0) / 1_000 }));
}

/** The measurements as text. */
export function summary({ frames, tasks, back, moved }) {
  const sorted = [...frames].sort((a, b) => a - b);
  const at = (part) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0);
  const late = frames.filter((ms) => ms > FRAME_LATE_MS).length;
  return `${moved} px in ${frames.length} frames, median ${at(0.5)} ms, p99 ${at(0.99)} ms, worst ${at(1)} ms, ${late} over ${FRAME_LATE_MS} ms; ${taskSummary(tasks)}; rows moved back by ${back} px at most`;
}

export function taskSummary(tasks) {
  const most = (key) => Math.round(Math.max(0, ...tasks.map((task) => task[key])));
  const long = tasks.filter(({ tookMs }) => tookMs > TASK_LONG_MS).length;
  return `${long} tasks over ${TASK_LONG_MS} ms, the longest took ${most("tookMs")} ms, the heaviest computed ${most("computedMs")} ms`;
}

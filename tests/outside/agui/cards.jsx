// A page that shows the host's cards with one of the two renderers: `@a2ui/react`, or CopilotKit's.
import { HttpAgent } from "@ag-ui/client";
import { A2uiSurface, basicCatalog } from "@a2ui/react/v0_9";
import { MessageProcessor } from "@a2ui/web_core/v0_9";
import { A2UIProvider, A2UIRenderer, basicCatalog as copilotCatalog, initializeDefaultCatalog, useA2UIActions } from "@copilotkit/a2ui-renderer";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const { url, token, renderer } = window.settings;
const agent = new HttpAgent({
  url: `${url}/v1/agui/assistant`,
  headers: { Authorization: `Bearer ${token}` },
  threadId: `cards-${renderer}`,
});
const catalogId = renderer === "a2ui" ? basicCatalog.id : copilotCatalog.id;
const capabilities = { "v0.9": { supportedCatalogIds: [catalogId] } };
window.catalogId = catalogId;
window.presses = [];
window.outcomes = [];

/** Runs the agent; operations of cards go to `show`. */
async function run(forwardedProps, show) {
  await agent.runAgent(
    { forwardedProps: { a2uiClientCapabilities: capabilities, ...forwardedProps } },
    {
      onEvent: ({ event }) => {
        if (event.type === "ACTIVITY_SNAPSHOT") show(event.content.a2ui_operations);
        if (event.type === "RUN_FINISHED") window.outcomes.push(event.outcome);
        if (event.type === "RUN_ERROR") window.outcomes.push({ type: "error", message: event.message });
      },
    },
  );
}

function press(userAction, show) {
  window.presses.push(userAction);
  void run({ a2uiAction: { userAction } }, show);
}

function begin(show) {
  const input = { title: "Sync", start_at: "2026-04-21T10:00:00+08:00", end_at: "2026-04-21T12:00:00+08:00" };
  agent.addMessage({ id: "u1", role: "user", content: `/calendar.create ${JSON.stringify(input)}` });
  void run({}, show);
}

function Reference() {
  const [surfaces, setSurfaces] = useState([]);
  useEffect(() => {
    const processor = new MessageProcessor([basicCatalog], (action) => press(action, show));
    const show = (operations) => {
      processor.processMessages(operations);
      setSurfaces(Array.from(processor.model.surfacesMap.values()));
    };
    begin(show);
  }, []);
  return surfaces.map((surface) => <A2uiSurface key={surface.id} surface={surface} />);
}

let showCopilot = () => {};

function CopilotCards() {
  const actions = useA2UIActions();
  const [ids, setIds] = useState([]);
  useEffect(() => {
    showCopilot = (operations) => {
      actions.processMessages(operations);
      const created = operations.map((operation) => operation.createSurface?.surfaceId).filter(Boolean);
      setIds((known) => [...new Set([...known, ...created])]);
    };
    begin(showCopilot);
  }, []);
  return ids.map((id) => <A2UIRenderer key={id} surfaceId={id} />);
}

function Copilot() {
  initializeDefaultCatalog();
  return (
    <A2UIProvider onAction={(message) => press(message.userAction, (operations) => showCopilot(operations))}>
      <CopilotCards />
    </A2UIProvider>
  );
}

createRoot(document.getElementById("root")).render(renderer === "a2ui" ? <Reference /> : <Copilot />);

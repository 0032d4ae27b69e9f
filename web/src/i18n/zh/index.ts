// All texts of one language, by area.
export { agents } from "./agents";
export { approvals } from "./approvals";
export { audit } from "./audit";
export { chat } from "./chat";
export { deliveries } from "./deliveries";
export { facts } from "./facts";
export { overview } from "./overview";
export { runs } from "./runs";
export { shell } from "./shell";
export { signin } from "./signin";
export { ui } from "./ui";

// Disables code generation in the zod schemas of `@ag-ui/core`: the content security policy forbids eval. Import it first.
import { config } from "zod/v4/core";

config({ jitless: true });

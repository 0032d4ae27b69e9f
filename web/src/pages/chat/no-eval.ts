// Tells the schemas of `@ag-ui/core` not to compile themselves: the page's policy forbids making code of text. Import it first.
import { config } from "zod/v4/core";

config({ jitless: true });

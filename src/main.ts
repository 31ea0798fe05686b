#!/usr/bin/env node
/**
 * The node service and its command line. A health check, which containers run every few seconds, loads no part of the
 * service.
 */
import { setFlagsFromString } from "node:v8"
import { checkHealth } from "./server/cli/health.ts"

// V8 puts what it has seen to live long among the old objects from the start. Contexts live long while the layers are built,
// and then for one request each: a request's whole memory would hang on them until the next full collection.
setFlagsFromString("--no-allocation-site-pretenuring")

if (!await checkHealth(process.argv.slice(2), process.env)) await import("./server/cli/program.ts")

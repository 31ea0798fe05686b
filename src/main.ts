#!/usr/bin/env node
/**
 * The node service and its command line. A health check, which containers run every few seconds, loads no other part of
 * the service.
 */
import { setFlagsFromString } from "node:v8"
import { checkHealth } from "./server/cli/health.ts"

// V8 pretenures objects of allocation sites that were long-lived so far. Contexts live long while the layers are built,
// and later for one request each: pretenured ones would retain each request's memory until the next full collection.
setFlagsFromString("--no-allocation-site-pretenuring")

// The graphs of compiled functions are freed immediately. V8's threads would free them when nothing more is to be compiled: 90 MB pile up in
// the first seconds of load, and the allocator never gives them back.
setFlagsFromString("--no-maglev-destroy-on-background")

if (!await checkHealth(process.argv.slice(2), process.env)) await import("./server/cli/program.ts")

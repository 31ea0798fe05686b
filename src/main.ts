#!/usr/bin/env node
/**
 * The node service and its command line. A health check, which containers run every few seconds, loads no part of the
 * service.
 */
import { checkHealth } from "./cli/health.ts"

if (!await checkHealth(process.argv.slice(2), process.env)) await import("./cli/program.ts")

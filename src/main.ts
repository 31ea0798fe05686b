/**
 * The node service. The JIT for schemas must be on before any schema is made.
 */
import "effect/schema/SchemaJITCompiler/enable"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { serve } from "./server/serve.ts"

NodeRuntime.runMain(serve)

/**
 * The service as a program.
 */
import * as Effect from "effect/Effect"
import { stopOnSignal } from "./stopOnSignal.ts"

/** Loads the gateway only when it is wanted: it is most of what there is to load. */
const service = Effect.flatten(Effect.promise(async () => (await import("../serve.ts")).serve))

/** Runs the gateway until a signal stops it; ends by draining. */
export const runService = stopOnSignal(service)

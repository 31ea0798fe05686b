/**
 * `reference`: the reference upstream on a socket.
 */
import * as Command from "effect/cli/Command"
import { referenceFlags, runReference } from "../../testing/command.ts"
import { stopOnSignal } from "./stopOnSignal.ts"

export const referenceCommand = Command.make(
  "reference",
  referenceFlags,
  (flags) => stopOnSignal(runReference(flags))
).pipe(Command.withDescription("Run a reference upstream that speaks the session protocol"))

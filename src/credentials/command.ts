/** The source `command`: a program that prints a token. */
import * as Effect from "effect/Effect"
import type { credentialKinds } from "../config/document.ts"
import { longestToken, sourceFailed, tokenIn, type TokenMaker } from "./CredentialSource.ts"
import { CurrentPrograms } from "./programs.ts"

/** Seconds in which a program has to end. */
const defaultTimeout = 10

const failed = (step: string) => Effect.fail(sourceFailed("command", step))

/** Issues tokens by a program. Its arguments may have secrets, so that it is named by its file alone. */
export const commandTokens = (settings: typeof credentialKinds["command"]["Type"]): TokenMaker => {
  const { for: life, run, timeout = defaultTimeout } = settings
  return {
    kind: "command",
    identity: () => run[0]!,
    isOfNode: false,
    sends: "key",
    issue: Effect.flatMap(CurrentPrograms, (start) => start(run, longestToken)).pipe(
      Effect.timeoutOrElse({
        duration: timeout * 1_000,
        orElse: () => Effect.succeed({ failed: `the program did not end within ${timeout} seconds` })
      }),
      Effect.flatMap((ended) => {
        if ("failed" in ended) return failed(ended.failed)
        const token = tokenIn(ended.output)
        return token === undefined
          ? failed("the program printed no token of one line")
          : Effect.succeed({ token, lives: life === undefined ? undefined : life * 1_000, renewAfter: undefined })
      })
    )
  }
}

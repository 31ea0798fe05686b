/** The source `file`: a token in a file, which is read again when it changes. */
import * as Effect from "effect/Effect"
import { readRegularFile } from "../config/regularFile.ts"
import { longestToken, sourceFailed, tokenIn, type TokenMaker } from "./CredentialSource.ts"

/** How long a read token serves before the file is read again in the background, in milliseconds; a refused token is read again first. */
const readAgainAfter = 5_000

/** Reads tokens from a file. Each node has its own. */
export const fileTokens = (path: string): TokenMaker => ({
  kind: "file",
  identity: () => path,
  isOfNode: true,
  sends: "key",
  issue: readRegularFile(path, longestToken).pipe(
    Effect.mapError(({ kind, message }) => sourceFailed("file", `the file cannot be read: ${kind}`, message)),
    Effect.flatMap((bytes) => {
      const token = tokenIn(bytes.toString("utf8"))
      return token === undefined
        ? Effect.fail(sourceFailed("file", "the file has no token of one line"))
        : Effect.succeed({ token, lives: undefined, renewAfter: readAgainAfter })
    })
  )
})

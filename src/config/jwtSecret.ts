/**
 * The secret that admin JWTs are signed with: 32 random bytes in a file of their own beside the configuration file
 * (`<config>.jwt-secret`, mode 0600), so that they are in no export and no sync.
 *
 * Where nothing may be written it is made anew with every start, and logins last until then.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Redacted from "effect/Redacted"
import { randomBytes } from "node:crypto"

const size = 32

const parse = (text: string): Uint8Array | undefined => {
  const bytes = Buffer.from(text.trim(), "base64url")
  return bytes.length === size ? bytes : undefined
}

/** A secret that lives as long as the process. */
export const makeJwtSecret: Effect.Effect<Redacted.Redacted<Uint8Array>> = Effect.sync(() =>
  Redacted.make<Uint8Array>(randomBytes(size))
)

/** The secret beside the configuration file, made when it is not there. Never fails. */
export const loadJwtSecret = Effect.fnUntraced(function*(configPath: string) {
  const fs = yield* FileSystem.FileSystem
  const path = `${configPath}.jwt-secret`
  const read = fs.readFileString(path).pipe(Effect.map(parse), Effect.orElseSucceed(() => undefined))
  const known = yield* read
  if (known !== undefined) return Redacted.make(known)

  const made = yield* makeJwtSecret
  const text = `${Buffer.from(Redacted.value(made)).toString("base64url")}\n`
  yield* Effect.ignore(fs.remove(path, { force: true }))
  yield* Effect.ignore(fs.writeFileString(path, text, { flag: "wx", mode: 0o600 }))
  // Another process of the same configuration may have been first: then its secret counts.
  const stored = yield* read
  if (stored !== undefined) return Redacted.make(stored)
  yield* Effect.logWarning(`${path} cannot be written: logins end with this process`)
  return made
})

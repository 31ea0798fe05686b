/**
 * The keys of what clients keep for the gateway, which all nodes of a store, and later starts, open. The key comes from the store's key, else
 * from the secret beside the configuration file, else from the admin key of the environment. Without any of them it ends with the process.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Redacted from "effect/Redacted"
import { type Encryption, makeEncryption } from "../cluster/store/encryption.ts"
import type { EnvironmentShape } from "./Environment.ts"
import { LastingEncryption } from "./LastingEncryption.ts"
import { findSecret, generateKey, keepSecret } from "./secrets.ts"

type AdminKeys = Partial<Pick<EnvironmentShape, "adminKey" | "adminKeyPrevious">>

/** The encryption with a key that is known now. */
export const encryptingBy = (
  { open, seal }: Pick<Encryption, "open" | "seal">
): LastingEncryption["Service"] => ({ open, seal: (name, text) => Effect.sync(() => seal(name, text)) })

/** The encryption with the admin key; without one, with a key of the process. */
export const byAdminKey = ({ adminKey, adminKeyPrevious }: AdminKeys): Encryption =>
  makeEncryption(
    adminKey === undefined ? generateKey("admin") : Redacted.value(adminKey),
    adminKeyPrevious && Redacted.value(adminKeyPrevious)
  )

/**
 * The encryption with the secret beside the configuration file. A missing secret is created by the first use, so that a start that seals
 * nothing leaves no file. If it cannot be kept, the admin key is used, whose texts can be opened in any case.
 */
export const besideConfig = Effect.fnUntraced(function*({ configPath, ...keys }: AdminKeys & { configPath: string }) {
  const fs = yield* FileSystem.FileSystem
  const other = byAdminKey(keys)
  const by = (secret: Redacted.Redacted<Uint8Array> | undefined): Encryption => {
    if (secret === undefined) return other
    const own = makeEncryption(Buffer.from(Redacted.value(secret)).toString("base64url"), undefined)
    return { ...own, open: (name, sealed) => own.open(name, sealed) ?? other.open(name, sealed) }
  }
  let current = by(yield* findSecret(configPath))
  const ready = yield* Effect.cached(
    Effect.map(Effect.provideService(keepSecret(configPath), FileSystem.FileSystem, fs), (secret) => {
      current = by(secret)
    })
  )
  return LastingEncryption.of({
    seal: (name, text) => Effect.map(ready, () => current.seal(name, text)),
    open: (name, sealed) => current.open(name, sealed)
  })
})

/**
 * The admin password's hash at work: scrypt with a salt.
 */
import * as Effect from "effect/Effect"
import { randomBytes, scrypt, type ScryptOptions, timingSafeEqual } from "node:crypto"
import { formatStoredPassword, parseStoredPassword, passwordMemory } from "../config/storedPassword.ts"

/** 32 MiB of memory and some 60 ms of one core (RFC 7914 with N = 2^15, r = 8). */
const cost = { N: 32_768, r: 8, p: 1 } as const
const hashLength = 32

/** What node's thread pool has begun it ends: so does this, so that whoever counts what runs there counts right. */
const derive = (password: string, salt: Buffer, length: number, options: ScryptOptions): Effect.Effect<Buffer> =>
  Effect.uninterruptible(Effect.callback((resume) => {
    scrypt(password.normalize("NFC"), salt, length, { ...options, maxmem: passwordMemory }, (error, hash) => {
      resume(error === null ? Effect.succeed(hash) : Effect.die(error))
    })
  }))

/** Hashes a password with a new salt. */
export const hashPassword = (password: string): Effect.Effect<string> =>
  Effect.suspend(() => {
    const salt = randomBytes(16)
    return Effect.map(derive(password, salt, hashLength, cost), (hash) => formatStoredPassword({ cost, salt, hash }))
  })

/** True when the password is the one that was hashed. A hash of another form matches nothing. */
export const verifyPassword = (password: string, stored: string): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const known = parseStoredPassword(stored)
    if (known === undefined) return Effect.succeed(false)
    return Effect.map(
      derive(password, known.salt, known.hash.length, known.cost),
      (actual) => timingSafeEqual(actual, known.hash)
    )
  })

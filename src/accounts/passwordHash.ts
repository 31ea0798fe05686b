/**
 * The admin password at rest: scrypt with a salt, as `scrypt$N$r$p$salt$hash` in Base64url.
 */
import * as Effect from "effect/Effect"
import { randomBytes, scrypt, type ScryptOptions, timingSafeEqual } from "node:crypto"

/** 32 MiB of memory and some 60 ms of one core (RFC 7914 with N = 2^15, r = 8). */
const cost = { N: 32_768, r: 8, p: 1 } as const
const hashLength = 32
/** The most memory that a configured hash may ask for, in bytes. */
const memoryLimit = 256 * 1024 * 1024

const derive = (password: string, salt: Buffer, length: number, options: ScryptOptions): Effect.Effect<Buffer> =>
  Effect.callback((resume) => {
    scrypt(password.normalize("NFC"), salt, length, { ...options, maxmem: memoryLimit }, (error, hash) => {
      resume(error === null ? Effect.succeed(hash) : Effect.die(error))
    })
  })

/** Hashes a password with a new salt. */
export const hashPassword = (password: string): Effect.Effect<string> =>
  Effect.suspend(() => {
    const salt = randomBytes(16)
    return Effect.map(
      derive(password, salt, hashLength, cost),
      (hash) => ["scrypt", cost.N, cost.r, cost.p, salt.toString("base64url"), hash.toString("base64url")].join("$")
    )
  })

/** True when the password is the one that was hashed. A hash of another form, or beyond all bounds, matches nothing. */
export const verifyPassword = (password: string, stored: string): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const [scheme, n, r, p, salt, hash] = stored.split("$")
    if (scheme !== "scrypt" || salt === undefined || hash === undefined) return Effect.succeed(false)
    const options = { N: Number(n), r: Number(r), p: Number(p) }
    const expected = Buffer.from(hash, "base64url")
    const valid = Object.values(options).every((value) => Number.isInteger(value) && value > 0) &&
      Number.isInteger(Math.log2(options.N)) && options.N > 1 && expected.length > 0 &&
      128 * options.N * options.r * options.p < memoryLimit
    if (!valid) return Effect.succeed(false)
    return Effect.map(
      derive(password, Buffer.from(salt, "base64url"), expected.length, options),
      (actual) => timingSafeEqual(actual, expected)
    )
  })

/** Support of the admin API's tests: calls over a socket, and bearers of every kind. */
import { Context } from "effect"
import * as Redacted from "effect/Redacted"
import { SignJWT } from "jose"
import { AdminCredentials } from "../../src/config/AdminCredentials.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { adminKey, type RunningGateway } from "../support/gateway.ts"

/** A reply. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as a JSON object. */
  readonly json: Record<string, unknown>
  /** `detail` of an error. */
  readonly detail: string
}

const objectOf = (text: string): Record<string, unknown> => {
  const value: unknown = text.startsWith("{") ? JSON.parse(text) : {}
  return typeof value === "object" && value !== null ? { ...value } : {}
}

export interface CallOptions {
  /** `null`: no credential. */
  readonly bearer?: string | null
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent unchanged. */
  readonly text?: string
  /** Sent in addition to the headers of every call. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Calls a gateway, as the operator unless another bearer is given. */
export const caller = (gateway: () => RunningGateway) =>
async (
  method: string,
  path: string,
  { bearer = adminKey, body, headers, text: sent }: CallOptions = {}
): Promise<Answer> => {
  const response = await fetch(`${gateway().url}${path}`, {
    method,
    headers: {
      "content-type": "application/json",
      ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      ...headers
    },
    ...(sent === undefined && body === undefined ? {} : { body: sent ?? JSON.stringify(body) })
  })
  const text = await response.text()
  const json = objectOf(text)
  return { status: response.status, headers: response.headers, text, json, detail: String(json["detail"]) }
}

export type Call = ReturnType<typeof caller>

export const credentialsOf = (gateway: RunningGateway) => Context.get(gateway.services, AdminCredentials)
export const storeOf = (gateway: RunningGateway) => Context.get(gateway.services, ConfigStore)

/** A JWT as the gateway would sign it. Times in Unix seconds. */
export const signJwt = (
  gateway: RunningGateway,
  claims: { readonly issuedAt: number; readonly expiresAt: number; readonly generation?: number },
  secret: Uint8Array = Redacted.value(credentialsOf(gateway).jwtSecret)
) =>
  new SignJWT({ role: "admin", generation: claims.generation ?? 0 })
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .setIssuedAt(claims.issuedAt)
    .setExpirationTime(claims.expiresAt)
    .sign(secret)

export const nowSeconds = () => Math.floor(Date.now() / 1000)

/**
 * The session. Its credential is a cookie that scripts cannot read. On a page that is not a secure context, where the browser
 * would not send the cookie, the credential is a JWT in memory, which is lost with the page.
 */
import * as Atom from "effect/reactivity/Atom"
import { at, credentials, fetchInTime, onSignedOut, setBearer, signedOut } from "./client.ts"
import { record, string } from "./json.ts"
import { texts } from "./preferences.ts"
import { registry } from "./registry.ts"

export interface Session {
  readonly state: "unknown" | "out" | "in"
  /** The credential is in memory. */
  readonly inMemory: boolean
  /** The admin key was generated and changes with every start of the gateway. */
  readonly generatedKey: boolean
  /** The token that signed in, and until when, in Unix milliseconds; `undefined` for the admin key, and where the gateway does not say. */
  readonly name: string | undefined
  readonly until: number | undefined
  /** The gateway ended the session: who signs in again goes on where it ended. */
  readonly ended: boolean
}

const out: Session = {
  state: "out",
  inMemory: false,
  generatedKey: false,
  name: undefined,
  until: undefined,
  ended: false
}

/** What the gateway says of a session. */
const said = (body: Readonly<Record<string, unknown>>) => ({
  generatedKey: body["default_password_warning"] === true,
  name: string(body["name"]) || undefined,
  until: typeof body["expires_at"] === "number" ? body["expires_at"] * 1_000 : undefined
})

export const sessionAtom = Atom.keepAlive(Atom.make<Session>({ ...out, state: "unknown" }))

onSignedOut(() => {
  setBearer(undefined)
  if (registry.get(sessionAtom).state === "in") registry.set(sessionAtom, { ...out, ended: true })
})

const json = async (method: string, path: string, payload?: object) => {
  const response = await fetchInTime(at(path), {
    method,
    headers: { "content-type": "application/json", ...credentials() },
    ...(payload === undefined ? {} : { body: JSON.stringify(payload) })
  })
  const body = record(await response.json().catch(() => null))
  const refused = response.status === 200
    ? undefined
    : string(body["detail"]) || texts().failures.status(response.status)
  return { body, refused }
}

/** Browsers send the origin of a request to secure contexts only; without it the gateway ignores the cookie. */
const cookies = (): boolean => globalThis.isSecureContext

/** Takes up the session of an earlier visit if its cookie is still valid. */
export const restoreSession = async (): Promise<void> => {
  const active = cookies() ? await json("GET", "/admin/session").catch(() => undefined) : undefined
  registry.set(
    sessionAtom,
    active?.body["active"] === true
      ? { ...out, state: "in", ...said(active.body) }
      : out
  )
}

/** Signs in. Resolves to why it was refused, or to `undefined`. */
export const signIn = async (key: string): Promise<string | undefined> => {
  try {
    const inMemory = !cookies()
    const { body, refused } = await json("POST", inMemory ? "/admin/login" : "/admin/session", { admin_key: key })
    if (refused !== undefined) return refused
    if (inMemory) setBearer(string(body["token"]))
    registry.set(sessionAtom, { ...out, state: "in", inMemory })
    if (!inMemory) {
      const { body: session } = await json("GET", "/admin/session")
      registry.update(sessionAtom, (now) => ({ ...now, ...said(session) }))
    }
    return undefined
  } catch {
    return texts().failures.unreachable
  }
}

/** Signs out: the gateway ends the session. Resolves to why it failed, or to `undefined`. */
export const signOut = async (): Promise<string | undefined> => {
  try {
    const { refused } = registry.get(sessionAtom).inMemory ? {} : await json("DELETE", "/admin/session")
    if (refused !== undefined) return refused
  } catch {
    return texts().failures.unreachable
  }
  setBearer(undefined)
  registry.set(sessionAtom, out)
  signedOut()
  return undefined
}

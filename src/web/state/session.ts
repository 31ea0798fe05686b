/**
 * Who is signed in. The credential is a cookie that scripts cannot read; where the browser would not send it (the page is
 * no secure context), it is a JWT in memory, which ends with the page.
 */
import * as Atom from "effect/reactivity/Atom"
import { at, credentials, onSignedOut, setBearer, signedOut } from "./client.ts"
import { texts } from "./preferences.ts"
import { registry } from "./registry.ts"

export interface Session {
  readonly state: "unknown" | "out" | "in"
  /** The sign-in ends with the page. */
  readonly inMemory: boolean
  /** The admin key is one that changes with every start. */
  readonly generatedKey: boolean
  /** It ended by itself: the person is told so. */
  readonly ended: boolean
}

const out: Session = { state: "out", inMemory: false, generatedKey: false, ended: false }

export const sessionAtom = Atom.keepAlive(Atom.make<Session>({ ...out, state: "unknown" }))

onSignedOut(() => {
  setBearer(undefined)
  if (registry.get(sessionAtom).state === "in") registry.set(sessionAtom, { ...out, ended: true })
})

const json = async (path: string, init: RequestInit): Promise<{ readonly status: number; readonly body: unknown }> => {
  const response = await fetch(at(path), { ...init, headers: { "content-type": "application/json", ...credentials() } })
  return { status: response.status, body: await response.json().catch(() => null) }
}

const field = (body: unknown, name: string): unknown =>
  typeof body === "object" && body !== null ? (body as Readonly<Record<string, unknown>>)[name] : undefined

/** Browsers tell where a request comes from to secure contexts only; without it the cookie counts for nothing. */
const cookies = (): boolean => globalThis.isSecureContext

/** Asks whether the cookie of an earlier visit still holds. */
export const restoreSession = async (): Promise<void> => {
  try {
    const { body } = cookies() ? await json("/admin/session", { method: "GET" }) : { body: null }
    registry.set(
      sessionAtom,
      field(body, "active") === true
        ? { ...out, state: "in", generatedKey: field(body, "default_password_warning") === true }
        : out
    )
  } catch {
    registry.set(sessionAtom, out)
  }
}

/** Signs in. Resolves to why not, or to `undefined`. */
export const signIn = async (key: string): Promise<string | undefined> => {
  const t = texts()
  try {
    const inMemory = !cookies()
    const { body, status } = await json(inMemory ? "/admin/login" : "/admin/session", {
      method: "POST",
      body: JSON.stringify({ admin_key: key })
    })
    const detail = field(body, "detail")
    if (status !== 200) return typeof detail === "string" ? detail : t.failures.status(status)
    const token = field(body, "token")
    if (inMemory && typeof token === "string") setBearer(token)
    registry.set(sessionAtom, { ...out, state: "in", inMemory })
    if (!inMemory) {
      const { body: session } = await json("/admin/session", { method: "GET" })
      registry.update(sessionAtom, (now) => ({
        ...now,
        generatedKey: field(session, "default_password_warning") === true
      }))
    }
    return undefined
  } catch {
    return t.failures.unreachable
  }
}

/** Signs out: the gateway ends the session itself. Resolves to why not, or to `undefined`. */
export const signOut = async (): Promise<string | undefined> => {
  const { inMemory } = registry.get(sessionAtom)
  try {
    if (!inMemory) {
      const { body, status } = await json("/admin/session", { method: "DELETE" })
      const detail = field(body, "detail")
      if (status !== 200) return typeof detail === "string" ? detail : texts().failures.status(status)
    }
  } catch {
    return texts().failures.unreachable
  }
  setBearer(undefined)
  registry.set(sessionAtom, out)
  signedOut()
  return undefined
}

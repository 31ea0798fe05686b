/**
 * Calls whose reply is not one value of the contract: a stream, or a refusal with its details.
 */
import { at, credentials, signedOut } from "./client.ts"

/** Calls the admin API with JSON. Tells when the session has ended. */
export const rest = async (
  method: "GET" | "POST" | "PUT" | "DELETE",
  path: string,
  options: {
    readonly body?: unknown
    readonly headers?: Readonly<Record<string, string>>
    readonly signal?: AbortSignal
  } = {}
): Promise<Response> => {
  const response = await fetch(at(path), {
    method,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    headers: {
      ...(options.body === undefined ? {} : { "content-type": "application/json" }),
      ...options.headers,
      ...credentials()
    },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) })
  })
  if (response.status === 401) signedOut()
  return response
}

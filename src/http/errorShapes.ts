/**
 * How each family of routes words an error (spec "Errors"). One renderer a family, used for replies and within streams.
 */
import type { GatewayError } from "../domain/GatewayError.ts"

/** Renders an error as the JSON text of a body in one family's shape. The request's id stands where the family has a field. */
export type ErrorShape = (error: GatewayError, requestId?: string) => string

/** Chat completions, Responses, embeddings and their model lists. */
export const openaiShape: ErrorShape = (error) =>
  JSON.stringify({ error: { message: error.message, type: error.type, code: error.code, param: error.param } })

/** Messages style: the vendor's envelope around the spec's fields. */
export const messagesShape: ErrorShape = (error, requestId) =>
  JSON.stringify({
    type: "error",
    error: { type: error.type, message: error.message, code: error.code, param: error.param },
    request_id: requestId ?? null
  })

/** Content generation. */
export const generateShape: ErrorShape = (error) =>
  JSON.stringify({ error: { code: error.status, message: error.message, status: error.rpc } })

/** Admin routes. */
export const detailShape: ErrorShape = ({ faults, message }) =>
  JSON.stringify(faults === undefined ? { detail: message } : { detail: message, faults })

/** The shape of the family that a path belongs to, for what no route of ours answers. */
export const shapeOfPath = (path: string): ErrorShape => {
  if (path.startsWith("/admin")) return detailShape
  if (path.startsWith("/v1beta/") || /^\/v1\/models\/[^/]*:[A-Za-z]+$/.test(path)) return generateShape
  if (path.startsWith("/msgcompat/") || path.startsWith("/messages") || path.startsWith("/v1/messages")) {
    return messagesShape
  }
  return openaiShape
}

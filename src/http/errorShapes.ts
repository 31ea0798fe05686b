/**
 * The errors of endpoints: the error format of each contract, declared once for each status; and that of the admin API.
 */
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import { codeOfStatus, type ErrorShape, errorShape } from "../contracts/shared/errorShapes.ts"
import { ErrorFault, errorTable, gatewayError } from "../domain/GatewayError.ts"
import { passedStatuses } from "../domain/passedError.ts"

const statuses = [...new Set(Object.values(errorTable).map((entry) => entry.status))]

/** The error schemas of endpoints with this error format, one per status. */
export const errorsOf = <S extends Schema.Top>(
  { at, family }: Pick<ErrorShape, "family"> & { readonly at: (status: number) => S }
) =>
  (family === undefined ? statuses : [...new Set([...statuses, ...passedStatuses])])
    .map((status) => at(status).pipe(HttpApiSchema.status(status)))

/** Admin routes: `{detail}`, with all `faults` of a refused change to the settings. */
export const detailErrors = errorShape(
  Schema.Struct({
    detail: Schema.String,
    faults: Schema.optionalKey(Schema.Array(ErrorFault))
  }).annotate({ identifier: "AdminError" }),
  {
    render: ({ faults, message }) => faults === undefined ? { detail: message } : { detail: message, faults },
    revive: ({ detail, faults }, status) =>
      // Other codes with this status are of business requests.
      gatewayError(status === 403 ? "role_not_allowed" : codeOfStatus(status), detail, { faults })
  }
)

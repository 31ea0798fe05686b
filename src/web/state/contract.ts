/**
 * The whole contract of the admin API, with the schema of the configuration: loaded by the calls that need it.
 */
export { AdminApi, AdminEvent } from "../../api.ts"

/**
 * Tools of a messages request that its client loads later, for servers of other contracts.
 */
import type { Conversation, ToolDeclaration } from "../../domain/Conversation.ts"
import type { FamilyName, VendorFields } from "../../domain/VendorFields.ts"

const name: FamilyName = "messages"

const ownFieldsOf = (
  { vendorFields }: { readonly vendorFields?: VendorFields | undefined }
): VendorFields["fields"] | undefined => vendorFields?.vendor === name ? vendorFields.fields : undefined

const isDeferred = (tool: ToolDeclaration): boolean => ownFieldsOf(tool)?.["defer_loading"] === true

/** The names in the references to tools, in their order. */
const referenced = ({ turns }: Conversation): ReadonlySet<unknown> =>
  new Set(
    turns.flatMap(({ parts }) => parts).flatMap((part) => part._tag === "Result" ? part.content : [])
      .map(ownFieldsOf).filter((fields) => fields?.["type"] === "tool_reference").map((fields) => fields?.["tool_name"])
  )

/**
 * The tools that a server of another contract gets: deferred ones once a reference names them, behind the others and in the
 * order of the references, so that the beginning of the prompt stays. All, where the vendor's tool search would find them.
 */
export const declaredElsewhere = (conversation: Conversation): ReadonlyArray<ToolDeclaration> => {
  const { toolChoice, tools, vendorTools = [] } = conversation
  const isSearched = vendorTools.some((tool) => String(ownFieldsOf(tool)?.["type"]).startsWith("tool_search_tool"))
  if (isSearched || toolChoice._tag === "Required" || !tools.some(isDeferred)) return tools
  const isForced = ({ name }: ToolDeclaration) => toolChoice._tag === "Function" && toolChoice.name === name
  const names = referenced(conversation)
  const loaded = [...names].flatMap((name) => tools.filter((tool) => tool.name === name && isDeferred(tool)))
  return [
    ...tools.filter((tool) => !isDeferred(tool) || (isForced(tool) && !names.has(tool.name))),
    ...loaded
  ]
}

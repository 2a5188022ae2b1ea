/** The arguments of a tool's body come from its schema. */
import { expectTypeOf, test } from "vitest";
import { defineTool, type ToolCallContext, type ToolDefinition } from "turnloop";
import { z } from "zod";

const base = { name: "order", description: "Orders something" };

test("a schema library gives the arguments their type", () => {
  const tool = defineTool({
    ...base,
    inputSchema: z.object({ what: z.string(), count: z.number().default(1) }),
    execute(args, call) {
      expectTypeOf(args).toEqualTypeOf<{ what: string; count: number }>();
      expectTypeOf(call).toEqualTypeOf<ToolCallContext>();
      return args.what;
    },
  });
  expectTypeOf(tool).toExtend<ToolDefinition>();
});

test("approval and presentation see the same arguments", () => {
  defineTool({
    ...base,
    inputSchema: z.object({ count: z.number() }),
    needsApproval(args) {
      expectTypeOf(args).toEqualTypeOf<{ count: number }>();
      return args.count > 3;
    },
    present: {
      call(args) {
        expectTypeOf(args).toEqualTypeOf<{ count: number }>();
        return { title: `${args.count}` };
      },
    },
    execute: () => "done",
  });
});

test("an argument that the schema does not know is an error", () => {
  defineTool({
    ...base,
    inputSchema: z.object({ what: z.string() }),
    // @ts-expect-error there is no such argument
    execute: ({ where }) => where,
  });
});

test("plain JSON Schema takes the type that validate answers, or that the body declares", () => {
  const inputSchema = { type: "object" };
  defineTool({
    ...base,
    inputSchema,
    validate: (args) => ({ count: Number(args) }),
    execute(args) {
      expectTypeOf(args).toEqualTypeOf<{ count: number }>();
    },
  });
  defineTool({ ...base, inputSchema, execute: ({ what }: { what: string }) => what });
});

test("a tool has a body, or a client that runs it", () => {
  defineTool({ ...base, inputSchema: { type: "object" }, runsAt: "client" });
  // @ts-expect-error nobody runs it
  defineTool({ ...base, inputSchema: { type: "object" } });
  // @ts-expect-error a tool has a description
  defineTool({ name: "order", inputSchema: { type: "object" }, execute: () => 1 });
});

test("a body may be synchronous or not, and answer anything", () => {
  defineTool({ ...base, inputSchema: z.object({}), execute: async () => ({ at: new Date() }) });
  defineTool({ ...base, inputSchema: z.object({}), execute: () => {} });
});

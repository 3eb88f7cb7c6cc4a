// Express has no types of its own.
declare module "express";
declare module "express4";
declare module "cors";

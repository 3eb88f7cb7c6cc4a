// Without types of their own, and used by tests only.

declare module "express4";
declare module "cors";
declare module "compression";
declare module "compression-1.7";
declare module "express-session";
declare module "morgan";
declare module "multer";
